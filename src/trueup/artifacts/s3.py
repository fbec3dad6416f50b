"""The store on S3: written once with `If-None-Match: *`, checksums by S3 itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import stamina
from botocore.exceptions import BotoCoreError, ClientError

from trueup.artifacts.store import exists, missing, place
from trueup.aws import connect
from trueup.errors import StoreUnavailable
from trueup.model.base import sha256

_NOT_THERE = frozenset({"NoSuchKey", "404", "NotFound"})
_THERE_ALREADY = frozenset({"PreconditionFailed", "412"})
_BUSY = frozenset({"ConditionalRequestConflict", "409"})
_BEYOND_THE_END = frozenset({"InvalidRange", "416"})


def connect_s3() -> Any:
    """A client that finds S3 by the standard environment, with retries and connections for a task."""
    # `when_required`: trueup sends SHA-256 itself, and reads what others wrote without a checksum.
    checksums = {
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    return connect("s3", attempts=5, connections=32, **checksums)


class S3Store:
    """A Store in one bucket; `client` is a boto3 or botocore S3 client with its own retries."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put_once(self, key: str, data: bytes) -> None:
        """Write an object that is not there. The same bytes again succeed; others raise ArtifactExists."""
        try:
            self._put_if_absent(key, data)
        except ClientError as error:
            if self._held(key) != sha256(data):
                raise exists(key) from error

    @stamina.retry(on=lambda error: isinstance(error, _Busy), attempts=8, wait_initial=0.05, wait_jitter=0.2)
    def _put_if_absent(self, key: str, data: bytes) -> None:
        with _answers(key, passing=_THERE_ALREADY):
            self._put(key, data, IfNoneMatch="*")

    def _held(self, key: str) -> str:
        return self.checksum(self.location(key)) or sha256(self.get(key))

    def put(self, key: str, data: bytes) -> None:
        """Write an object, whatever was there."""
        with _answers(key):
            self._put(key, data)

    def _put(self, key: str, data: bytes, **condition: str) -> None:
        digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
        # S3 needs no more than the checksum; naming the algorithm makes emulators keep it as S3 does.
        checksum = {"ChecksumAlgorithm": "SHA256", "ChecksumSHA256": digest}
        self._client.put_object(Bucket=self._bucket, Key=key, Body=data, **checksum, **condition)

    def get(self, key: str) -> bytes:
        """The whole object. Raises ArtifactMissing."""
        return self._get(key)

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Those of `length` bytes from `offset` that there are. Raises ArtifactMissing."""
        if not length:
            return self._get(key)[:0]
        try:
            return self._get(key, Range=f"bytes={offset}-{offset + length - 1}")
        except ClientError:
            return b""

    def _get(self, key: str, **options: str) -> bytes:
        with _answers(key, passing=_BEYOND_THE_END):
            body: bytes = self._client.get_object(Bucket=self._bucket, Key=key, **options)["Body"].read()
        return body

    def checksum(self, location: str) -> str | None:
        """SHA-256 of the object at a location as S3 holds it; None: no object; "": stored without one."""
        bucket, key = place(location)
        if not key:
            return None
        try:
            with _answers(location, passing=_NOT_THERE):
                head = self._client.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
        except ClientError:
            return None
        return _whole(head.get("ChecksumSHA256", ""))

    def version(self, key: str) -> str:
        """The id of the newest version; `null`, as S3 says, where the bucket keeps no versions."""
        with _answers(key):
            head = self._client.head_object(Bucket=self._bucket, Key=key)
        return str(head.get("VersionId", "null"))

    def list(self, prefix: str) -> Iterator[str]:
        """Keys under a prefix, in order."""
        pages = iter(
            self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        )
        while True:
            with _answers(prefix):
                page = next(pages, None)
            if page is None:
                return
            yield from [found["Key"] for found in page.get("Contents", [])]

    def location(self, key: str) -> str:
        """The key with its bucket."""
        return f"s3://{self._bucket}/{key}"


def list_sizes(client: Any, prefix: str) -> Iterator[tuple[str, int]]:
    """The objects under `s3://bucket/prefix`, each as its key and its size. Raises StoreUnavailable."""
    bucket, _, path = prefix.removeprefix("s3://").partition("/")
    with _answers(prefix):
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=path):
            yield from ((found["Key"], found["Size"]) for found in page.get("Contents", []))


class _Busy(StoreUnavailable):
    """Another write of the same key was under way."""


@contextmanager
def _answers(key: str, passing: frozenset[str] = frozenset()) -> Iterator[None]:
    """Turn what S3 says into errors of ours; those in `passing` pass as they are."""
    try:
        yield
    except ClientError as error:
        code = str(error.response["Error"]["Code"])
        if code in passing:
            raise
        if code in _NOT_THERE:
            raise missing(key) from error
        raise _unavailable(key, error, _Busy if code in _BUSY else StoreUnavailable) from error
    except BotoCoreError as error:
        raise _unavailable(key, error) from error


def _unavailable(
    key: str, error: Exception, kind: type[StoreUnavailable] = StoreUnavailable
) -> StoreUnavailable:
    return kind(
        f"S3 did not do what was asked with {key}: {error}.",
        remedy="Check the bucket's name, the role and the network; work goes on from the last checkpoint.",
    )


def _whole(checksum: str) -> str:
    """The checksum as hexadecimal. One over the parts of an upload (`…-3`) says nothing of the whole."""
    return "" if "-" in checksum else base64.b64decode(checksum).hex()
