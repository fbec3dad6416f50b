"""The artifact store does what it promises in memory, on moto and on MiniStack; and S3's odd answers."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from trueup.artifacts.s3 import S3Store
from trueup.errors import ArtifactExists, StoreUnavailable
from trueup.testing.suites.store import ArtifactsSuite, StoreSuite


class TestStore(StoreSuite):
    """Stores in memory, on moto and on MiniStack."""


class TestArtifacts(ArtifactsSuite):
    """A run's objects in each of them."""


class Answers:
    """An S3 client that gives the answers it was made with, one by one, and remembers what it was asked."""

    def __init__(self, **answers: list[Any]) -> None:
        self._answers = answers
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*_: Any, **arguments: Any) -> Any:
            self.asked.append((name, arguments))
            answer = self._answers[name].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "because"}}, "PutObject")


def checksum_of(data: bytes) -> dict[str, str]:
    return {"ChecksumSHA256": base64.b64encode(hashlib.sha256(data).digest()).decode()}


NO_ANSWER = EndpointConnectionError(endpoint_url="https://s3")


def test_a_put_sends_the_checksum_and_the_condition() -> None:
    client = Answers(put_object=[{}, {}])
    S3Store(client, "bucket").put_once("key", b"data")
    S3Store(client, "bucket").put("key", b"data")
    named = {"ChecksumAlgorithm": "SHA256", **checksum_of(b"data")}
    body = {"Bucket": "bucket", "Key": "key", "Body": b"data", **named}
    assert [("put_object", {**body, "IfNoneMatch": "*"}), ("put_object", body)] == client.asked


def test_a_put_whose_first_answer_was_lost_is_no_conflict() -> None:
    # botocore sends it again, and S3 refuses that with the effect of the first.
    client = Answers(put_object=[error("PreconditionFailed")], head_object=[checksum_of(b"data")])
    S3Store(client, "bucket").put_once("key", b"data")
    assert ["put_object", "head_object"] == [name for name, _ in client.asked]


def test_what_is_there_is_compared_by_checksum_without_a_download() -> None:
    client = Answers(put_object=[error("PreconditionFailed")], head_object=[checksum_of(b"other")])
    with pytest.raises(ArtifactExists):
        S3Store(client, "bucket").put_once("key", b"data")


def test_a_put_that_met_another_one_under_way_is_tried_again() -> None:
    client = Answers(put_object=[error("ConditionalRequestConflict")] * 2 + [{}])
    S3Store(client, "bucket").put_once("key", b"data")
    assert 3 == len(client.asked)


@pytest.mark.parametrize(
    "answer", [error("SlowDown"), error("NoSuchBucket"), error("AccessDenied"), NO_ANSWER]
)
@pytest.mark.parametrize("call", ["put_once", "put", "get", "get_range", "checksum", "list"])
def test_what_s3_does_not_do_is_said_with_the_key_and_the_remedy(call: str, answer: Exception) -> None:
    names = ("put_object", "get_object", "head_object", "get_paginator")
    store = S3Store(
        Answers(**{name: [Pages(answer) if name == "get_paginator" else answer] for name in names}), "b"
    )
    arguments = {
        "put_once": ("key", b"data"),
        "put": ("key", b"data"),
        "get": ("key",),
        "get_range": ("key", 0, 5),
        "checksum": ("s3://b/key",),
        "list": ("key",),
    }
    with pytest.raises(StoreUnavailable, match=r"with .*key.*because|with .*key.*connect") as refused:
        list(getattr(store, call)(*arguments[call]) or ())
    assert "Check the bucket's name" in refused.value.remedy


class Pages:
    """A paginator whose first page is an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def paginate(self, **_: Any) -> Any:
        raise self._error
        yield


@pytest.mark.parametrize("checksum", ["", "0K3lSKLFDnv0iAQ5Vu2m4L8JVj8M0ZLCFS5f2nCxkLo=-3"])
def test_an_object_without_a_checksum_of_the_whole_has_an_empty_one(checksum: str) -> None:
    client = Answers(head_object=[{"ChecksumSHA256": checksum} if checksum else {}])
    assert "" == S3Store(client, "bucket").checksum("s3://bucket/key")


def test_an_object_stored_without_a_checksum_is_compared_by_its_bytes() -> None:
    answer = {"Body": Body(b"data")}
    client = Answers(put_object=[error("PreconditionFailed")], head_object=[{}], get_object=[answer])
    S3Store(client, "bucket").put_once("key", b"data")
    assert 3 == len(client.asked)


class Body:
    """What get_object gives."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        return self._data
