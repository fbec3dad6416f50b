"""`python -m trueup.handling.api` writes the OpenAPI document from the routes."""

from __future__ import annotations

import sys

from trueup.handling.api.openapi import FILE, text


def main() -> None:
    """Write it, and name the file."""
    FILE.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{FILE}\n")


if __name__ == "__main__":
    main()
