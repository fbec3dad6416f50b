"""What exports with a manifest share: its documents, the instant they show, and checksums of their files."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from datetime import datetime
from typing import IO, Any

from trueup.errors import SourceError
from trueup.model.reconcile import Side

__all__ = ["Hashed", "changed", "check_instant", "instant", "json_object", "require"]

_CHUNK = 1024 * 1024


class Hashed(io.RawIOBase):
    """A file that hashes what is read of it, as manifests do, and counts its bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self._md5.update(data)
        self._size += len(data)
        buffer[: len(data)] = data
        return len(data)

    def whole(self) -> tuple[bytes, int]:
        """The checksum and the size of the whole, which is read to its end for that."""
        while self.read(_CHUNK):
            pass
        return self._md5.digest(), self._size

    def close(self) -> None:
        self._file.close()
        super().close()


def json_object(name: str, side: Side, data: bytes) -> dict[str, Any]:
    """The object in a manifest, or in a line of one. Raises SourceError."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise SourceError(f"{name}, of the {side}, is no JSON: {error}.") from error
    if not isinstance(document, dict):
        raise SourceError(f"{name}, of the {side}, is no JSON object.")
    return document


def require(
    name: str, side: Side, document: Mapping[str, Any], fields: Mapping[str, type], what: str
) -> None:
    """SourceError where a manifest, or a line of one, lacks a field or has it with another type."""
    for field, kind in fields.items():
        if not isinstance(document.get(field), kind):
            has = f"{field} {document[field]!r}" if field in document else f"no {field}"
            raise SourceError(f"{name}, of the {side}, has {has}.", remedy=what)


def instant(name: str, side: Side, text: str, what: str) -> datetime:
    """The instant in a manifest. Raises SourceError."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise SourceError(f"{name}, of the {side}, is of {text!r}, which is no instant.", remedy=what)
    return found


def check_instant(what: str, taken: datetime, as_of: datetime | None, remedy: str) -> None:
    """SourceError where a picture is older than what is compared: changes between would look like drift."""
    if as_of is not None and taken < as_of:
        raise SourceError(
            f"{what} is of {taken:%Y-%m-%dT%H:%M:%SZ}, "
            f"and what is compared is of {as_of:%Y-%m-%dT%H:%M:%SZ}.",
            remedy=remedy,
        )


def changed(name: str, side: Side, found: str, declared: str, again: str) -> SourceError:
    """What is said of a file that is not what its manifest says; `again` is how to get another."""
    return SourceError(
        f"{name}, of the {side}, has {found}, and the manifest says {declared}.",
        remedy=f"It is truncated or was changed: {again}.",
    )
