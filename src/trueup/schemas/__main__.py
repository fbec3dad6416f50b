"""`python -m trueup.schemas` rewrites the published files from the models."""

from __future__ import annotations

import sys

from trueup.schemas import FOLDER, MODELS, REPORT_FILES, file_name, published, published_report


def main() -> None:
    """Write every schema and name its file."""
    for name in MODELS:
        path = FOLDER / file_name(name)
        path.write_text(published(name), encoding="utf-8")
        sys.stdout.write(f"{path}\n")
    for name, file in REPORT_FILES.items():
        path = FOLDER / file
        path.write_text(published_report(name), encoding="utf-8")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
