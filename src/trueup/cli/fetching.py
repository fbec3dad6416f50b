"""A copy of the evidence of a run, through the API: all of it and as its hashes say, or nothing."""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trueup.cli.calling import Client, run_path
from trueup.cli.patience import ON_THE_WAY
from trueup.cli.signals import ended_in_order
from trueup.errors import ArtifactError, UsageError

MANIFEST = "evidence.json"
SUMS = "SHA256SUMS"
_LONGEST_NAME = 200
"""Characters of a file's name; file systems take 255 bytes, and each of these is one."""


def check_new(folder: Path) -> None:
    """Raises UsageError where a folder holds something, or cannot be made."""
    with _told(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(
                f"--to: {folder} is there already, and nothing is written over.", remedy="Name a new folder."
            )
        if not folder.absolute().parent.is_dir():
            raise UsageError(
                f"--to: {folder.absolute().parent} is no folder.", remedy="Make it, or name another one."
            )


def fetch(there: Client, found: dict[str, Any], folder: Path) -> None:
    """Download what a manifest names, and the manifest, into a folder that is new or empty.

    Everything goes into a folder beside it first, which takes its name once each file was checked.
    Raises UsageError where that cannot be written, ArtifactError where bytes are not what was hashed.
    """
    with (
        ended_in_order(),
        _told(folder),
        tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.absolute().parent) as beside,
    ):
        made = Path(beside) / "evidence"
        made.mkdir(mode=0o700)
        _fill(there, found, made)
        # It would replace an empty folder, and no other.
        made.rename(folder)


def evidence_of(there: Client, run: str) -> dict[str, Any]:
    """The whole manifest of a run's evidence, and all that was changed, put together from its pages.

    Raises ArtifactError where they are not of one manifest.
    """
    path = run_path(run, "evidence")
    found = there.get(path)
    while (after := found["next"]) is not None:
        page = there.get(path, patience=ON_THE_WAY, after=after)
        if page["sha256"] != found["sha256"] or page["next"] == after:
            raise ArtifactError(
                f"The API answered pages of two manifests of {run}.",
                remedy="Check TRUEUP_API, and that nobody changed the manifest; ask again.",
            )
        found["manifest"]["objects"] += page["manifest"]["objects"]
        found["changed"] |= page["changed"]
        found["next"] = page["next"]
    return dict(found)


def _fill(there: Client, found: dict[str, Any], made: Path) -> None:
    run = found["manifest"]["runId"]
    files = {MANIFEST: found["sha256"]}
    for one in (*found["manifest"]["more"], *found["manifest"]["objects"]):
        files[file_name(run, one["location"])] = one["sha256"]
    for name, digest in files.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _download(there, run, digest, path)
    sums = "".join(f"{digest}  {name}\n" for name, digest in files.items())
    _write_new(made / SUMS, [sums.encode()])


def file_name(run: str, location: str) -> str:
    """The path of an object's copy: as it lies under its run, in names that any file system takes."""
    path = location.partition(f"/runs/{run}/")[2] or location.partition("://")[2]
    return "/".join(_safe(part) for part in path.split("/"))


def _safe(part: str) -> str:
    name = quote(part, safe=" =,+@~#$&()[]{}!;")
    if name in ("", ".", ".."):
        return "%2E" * len(name) or "%"
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(part.encode()).hexdigest()[:12]
    return f"{name[: _LONGEST_NAME - 13]}-{digest}"


def _download(there: Client, run: str, digest: str, path: Path) -> None:
    """All bytes of a hash into a file. Raises ArtifactError where they have another one."""
    seen = hashlib.sha256()

    def parts() -> Iterator[bytes]:
        for data in _parts(there, run, digest):
            seen.update(data)
            yield data

    _write_new(path, parts())
    if seen.hexdigest() != digest:
        raise ArtifactError(
            f"{path.name} came with the SHA-256 {seen.hexdigest()}, not {digest} as the manifest says.",
            remedy="It was changed after the run ended: nothing was kept; see `trueup evidence`.",
        )


def _parts(there: Client, run: str, digest: str) -> Iterator[bytes]:
    offset: int | None = 0
    while offset is not None:
        data, after = _part(there, run, digest, offset)
        yield data
        offset = after


def _part(there: Client, run: str, digest: str, offset: int) -> tuple[bytes, int | None]:
    """The bytes from an offset on, and the offset behind them; None: there are no more."""
    path = run_path(run, "evidence", digest)
    part = there.get(path, patience=ON_THE_WAY, offset=offset)
    try:
        data, after = base64.b64decode(part["data"], validate=True), part["next"]
        if after is not None and after != offset + len(data):
            raise ValueError(f"{after} is not where the next bytes begin")
    except (TypeError, ValueError) as error:
        raise ArtifactError(
            f"The API answered what is no part of {digest}: {error}.", remedy="Check TRUEUP_API."
        ) from error
    return data, after


def _write_new(path: Path, parts: Any) -> None:
    """A file that was not there, on the disk before anybody relies on it."""
    with path.open("xb") as file:
        for data in parts:
            file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"--to: {folder} cannot be written: {error.strerror}. Nothing was kept.",
            remedy="Name another folder, with room and the right to write.",
        ) from error
