"""The command line, its demo over two months instead of a year: run as a module by `test_demo.py`."""

from __future__ import annotations

import sys
from functools import partial

from trueup.local import demo
from trueup.program import main

if __name__ == "__main__":
    demo.run_demo = partial(demo.run_demo, end="2013-03-01")
    sys.exit(main())
