"""Where artifacts are kept: the port, and the store in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Protocol

from trueup.errors import ArtifactExists, ArtifactMissing
from trueup.model.base import sha256


class Store(Protocol):
    """Objects under keys of one bucket. All may raise StoreUnavailable."""

    def put_once(self, key: str, data: bytes) -> None:
        """Write an object that is not there. The same bytes again succeed; others raise ArtifactExists."""

    def put(self, key: str, data: bytes) -> None:
        """Write an object, whatever was there."""

    def get(self, key: str) -> bytes:
        """The whole object. Raises ArtifactMissing."""

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Those of `length` bytes from `offset` that there are. Raises ArtifactMissing."""

    def checksum(self, location: str) -> str | None:
        """SHA-256 (hexadecimal) of the object at `s3://bucket/key`, as the store itself holds it.

        None: there is no object, or the location is not one in S3.
        An empty string: the object is there, but was stored without a SHA-256 of the whole.
        """

    def version(self, key: str) -> str:
        """The id of the newest version, for a reader that must get that one. Raises ArtifactMissing."""

    def list(self, prefix: str) -> Iterator[str]:
        """Keys under a prefix, in order."""

    def location(self, key: str) -> str:
        """The key as `s3://bucket/key`."""


def place(location: str) -> tuple[str, str]:
    """Bucket and key of a location, both empty where it is none in S3. A key may hold any character."""
    scheme, _, rest = location.partition("://")
    bucket, _, key = rest.partition("/")
    return (bucket, key) if scheme == "s3" and bucket and key else ("", "")


def missing(key: str) -> ArtifactMissing:
    """The error for an object that is not there."""
    return ArtifactMissing(
        f"There is no object {key}.", remedy="Check the run's id, and that nothing was deleted."
    )


def exists(key: str) -> ArtifactExists:
    """The error for an object that holds something else."""
    return ArtifactExists(
        f"{key} holds other content already, and artifacts are written once.",
        remedy="Nothing was overwritten. Use another run, or find out who wrote it.",
    )


class MemoryStore:
    """A Store in a dictionary."""

    def __init__(self, bucket: str = "memory") -> None:
        self._bucket = bucket
        self._objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def put_once(self, key: str, data: bytes) -> None:
        """Write an object that is not there."""
        with self._lock:
            if self._objects.setdefault(key, data) != data:
                raise exists(key)

    def put(self, key: str, data: bytes) -> None:
        """Write an object, whatever was there."""
        with self._lock:
            self._objects[key] = data

    def get(self, key: str) -> bytes:
        """The whole object."""
        try:
            return self._objects[key]
        except KeyError:
            raise missing(key) from None

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Some of its bytes."""
        return self.get(key)[offset : offset + length]

    def checksum(self, location: str) -> str | None:
        """Its SHA-256."""
        bucket, key = place(location)
        data = self._objects.get(key) if bucket == self._bucket else None
        return None if data is None else sha256(data)

    def version(self, key: str) -> str:
        """A version that is the same as long as the object is."""
        return sha256(self.get(key))[:32]

    def list(self, prefix: str) -> Iterator[str]:
        """Keys under a prefix."""
        with self._lock:
            found = sorted(key for key in self._objects if key.startswith(prefix))
        yield from found

    def location(self, key: str) -> str:
        """The key with its bucket."""
        return f"s3://{self._bucket}/{key}"
