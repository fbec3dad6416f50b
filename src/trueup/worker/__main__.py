"""`python -m trueup.worker`."""

import sys

from trueup.worker.main import main

if __name__ == "__main__":
    sys.exit(main())
