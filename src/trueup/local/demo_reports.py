"""The folder where the demo's reports outlive its stack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile

from trueup.errors import UsageError

Note = Callable[[str], None]


def make_folder(folder: Path) -> None:
    """Make it, write a file there and remove it: what cannot be kept is said before minutes pass."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be made: {error.strerror}.", remedy="Name a folder for the reports that can be."
        ) from error
    try:
        with NamedTemporaryFile(dir=folder) as probe:
            probe.write(b"probe")
            probe.flush()
    except OSError as error:
        raise UsageError(
            f"Nothing can be written to {folder}: {error.strerror}.",
            remedy="Name a folder for the reports that can be written to.",
        ) from error


def keep(folder: Path, run_id: str, page: str, document: bytes, note: Note) -> str | None:
    """Put a run's report into the folder, its JSON beside its page; the page's path.

    None where it cannot be kept (any more), which is noted: the figures are not lost with it.
    """
    file = folder.resolve() / f"{run_id}.html"
    try:
        file.write_text(page, encoding="utf-8")
        file.with_suffix(".json").write_bytes(document)
    except OSError as error:
        note(f"{run_id}: its report could not be kept in {file.parent}: {error.strerror}")
        return None
    return str(file)
