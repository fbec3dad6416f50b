"""Distributed Maps for tests: a machine with one, and S3 with its objects at hand."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

from .harness import Services, machine, passing

FAIL = {"Type": "Fail", "Error": "Bad", "Cause": "luck"}
IS_BAD = {
    "Type": "Choice",
    "Choices": [{"Variable": "$.bad", "IsPresent": True, "Next": "F"}],
    "Default": "P",
}
SOME_FAIL = (("C", IS_BAD), ("P", passing(End=True)), ("F", FAIL))
BAD, GOOD = {"bad": 1}, {"good": 1}


def distributed(*states: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    processor = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **machine(*states)}
    return machine(("M", {"Type": "Map", "ItemProcessor": processor, "Label": "L", **fields}))


class Bucket(Services):
    """S3 with its objects at hand."""

    def __init__(self, **files: str) -> None:
        self.files = dict(files)
        super().__init__(s3_getObject=self._get, s3_putObject=self._put, s3_listObjectsV2=self._list)

    def _get(self, given: Any) -> Any:
        return {"Body": io.BytesIO(self.files[given["Key"]].encode())}

    def _put(self, given: Any) -> Any:
        self.files[given["Key"]] = given["Body"]
        return {}

    def _list(self, given: Any) -> Any:
        first = given["ContinuationToken"] is None
        entry = {
            "ETag": '"e"',
            "Key": "a" if first else "b",
            "Size": 3,
            "LastModified": datetime(2026, 1, 1, tzinfo=UTC),
        }
        return {"Contents": [entry], **({"NextContinuationToken": "more"} if first else {})}


def reader(key: str = "items", **config: Any) -> dict[str, Any]:
    return {
        "Resource": "arn:aws:states:::s3:getObject",
        "Parameters": {"Bucket": "b", "Key": key, "VersionId.$": "$.version"},
        "ReaderConfig": {"InputType": "JSON", **config},
    }
