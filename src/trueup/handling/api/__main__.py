"""`python -m trueup.handling.api` writes the OpenAPI document and its page from the routes."""

from __future__ import annotations

import sys

from trueup.handling.api import openapi, reference


def main() -> None:
    """Write both, and name the files."""
    for made in (openapi, reference):
        made.FILE.write_text(made.text(), encoding="utf-8")
        sys.stdout.write(f"{made.FILE}\n")


if __name__ == "__main__":
    main()
