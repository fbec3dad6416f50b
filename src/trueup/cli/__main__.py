"""`python -m trueup.cli`."""

import sys

from trueup.cli import main

if __name__ == "__main__":
    sys.exit(main())
