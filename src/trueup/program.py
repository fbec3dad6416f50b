"""The program `trueup`: it can be interrupted from its first moment on, before all imports."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""As `trueup.cli.exits` has it, which is not there yet."""


def main() -> int:
    """Run the command line, and give its exit code; Ctrl-C meanwhile is one line and no traceback."""
    try:
        from trueup.cli import main
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return INTERRUPTED
    return main()
