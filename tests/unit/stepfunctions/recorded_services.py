"""Services for the recorded executions: in memory, answering as AWS did.

What a function returned or a file held is derived from the recording itself, at run time.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import uuid
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from trueup.local.stepfunctions.integrations.port import Answer, ServiceFailure
from trueup.local.stepfunctions.values import to_text


def events_of(recorded: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All events of all histories in a recording."""
    return [event for part in recorded.values() if isinstance(part, dict) for event in part.get("events", [])]


class Recorded:
    """The services as one recording knew them."""

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        self._events = events_of(recorded)
        self._tables: dict[str, dict[str, Any]] = {}
        self._queues: dict[str, list[str]] = {}

    async def call(self, service: str, action: str, parameters: Any) -> Answer:
        """Answer a call. Raises ServiceFailure."""
        answer = getattr(self, f"_{service}_{action}")
        output = answer(parameters)
        if asyncio.iscoroutine(output):
            output = await output
        headers = {"content-length": self._length(service, output)}
        return Answer(output, headers, str(uuid.uuid4()))

    def _length(self, service: str, output: Any) -> str:
        if service == "sns":
            return "294"
        if service == "lambda":
            return str(len(output["Payload"]))
        return str(len(json.dumps(output, separators=(",", ":"), default=str)))

    # DynamoDB: items by their id.

    def _table(self, parameters: Any) -> dict[str, Any]:
        if any("ResourceNotFoundException" in json.dumps(event) for event in self._events):
            raise ServiceFailure("ResourceNotFoundException", "Requested resource not found", request_id="r")
        return self._tables.setdefault(parameters["TableName"], {})

    def _dynamodb_putItem(self, parameters: Any) -> Any:  # noqa: N802
        self._table(parameters)[parameters["Item"]["id"]["S"]] = dict(parameters["Item"])
        return {}

    def _dynamodb_getItem(self, parameters: Any) -> Any:  # noqa: N802
        return {"Item": self._table(parameters)[parameters["Key"]["id"]["S"]]}

    def _dynamodb_deleteItem(self, parameters: Any) -> Any:  # noqa: N802
        del self._table(parameters)[parameters["Key"]["id"]["S"]]
        return {}

    def _dynamodb_updateItem(self, parameters: Any) -> Any:  # noqa: N802
        name, _, value = parameters["UpdateExpression"].removeprefix("set ").partition("=")
        changed = {name: parameters["ExpressionAttributeValues"][value]}
        self._table(parameters)[parameters["Key"]["id"]["S"]] |= changed
        return {"Attributes": changed}

    # SQS and SNS.

    def _sqs_sendMessage(self, parameters: Any) -> Any:  # noqa: N802
        if "no-such-queue" in parameters["QueueUrl"]:
            reason = "Unable to execute HTTP request: no-such-queue-73e08fde: Name or service not known"
            raise ServiceFailure("SdkClientException", reason, status=0)
        body = parameters["MessageBody"]
        text = body if isinstance(body, str) else to_text(body)
        self._queues.setdefault(parameters["QueueUrl"], []).append(text)
        digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        return {"MD5OfMessageBody": digest, "MessageId": str(uuid.uuid4())}

    def _sqs_receiveMessage(self, parameters: Any) -> Any:  # noqa: N802
        waiting = self._queues.pop(parameters["QueueUrl"], [])
        return {"Messages": [{"Body": text} for text in waiting]} if waiting else {}

    def _sns_publish(self, _: Any) -> Any:
        if any("NotFoundException" in json.dumps(event) for event in self._events):
            raise ServiceFailure("NotFound", "Topic does not exist", status=404, request_id="r")
        return {"MessageId": str(uuid.uuid4())}

    # Lambda: what the recording says that the function answered.

    async def _lambda_invoke(self, _: Any) -> Any:
        kinds = {event["type"]: event for event in self._events}
        if "TaskTimedOut" in kinds:
            await asyncio.sleep(10**6)
        text = json.dumps("x" * 300_000) if "DataLimit" in json.dumps(self._events) else None
        for kind, field in (
            ("LambdaFunctionFailed", "lambdaFunctionFailedEventDetails"),
            ("TaskFailed", "taskFailedEventDetails"),
        ):
            if kind in kinds and text is None:
                cause = kinds[kind][field]["cause"]
                return {"FunctionError": "Unhandled", "Payload": json.dumps(cause).encode()}
        return {"Payload": (text or self._returned(kinds)).encode(), "StatusCode": 200}

    def _returned(self, kinds: Mapping[str, Any]) -> str:
        if "LambdaFunctionSucceeded" in kinds:
            output = kinds["LambdaFunctionSucceeded"]["lambdaFunctionSucceededEventDetails"]["output"]
            return output if isinstance(output, str) else to_text(output)
        return json.dumps(kinds["TaskSucceeded"]["taskSucceededEventDetails"]["output"]["Payload"])

    # S3: files as their readers saw them.

    def _s3_getObject(self, parameters: Any) -> Any:  # noqa: N802
        if "Body" in json.dumps(self._events):
            return self._object()
        return {"Body": io.BytesIO(self._file(parameters["Key"]).encode())}

    def _object(self) -> Any:
        told = next(e for e in self._events if e["type"] == "TaskSucceeded")["taskSucceededEventDetails"][
            "output"
        ]
        body = told["Body"].encode()
        return {
            "AcceptRanges": "bytes",
            "ContentLength": len(body),
            "ContentType": "binary/octet-stream",
            "ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"',
            "LastModified": datetime.now(UTC),
            "Metadata": {},
            "ServerSideEncryption": "AES256",
            "Body": io.BytesIO(body),
        }

    def _file(self, key: str) -> str:
        left = [event for event in self._events if event["type"] == "MapStateExited"]
        output = left[0]["stateExitedEventDetails"]["output"] if left else '{"not": "an array"}'
        if not key.endswith(".csv"):
            return str(output) if isinstance(output, str) else to_text(output)
        rows = json.loads(output) if isinstance(output, str) else []
        headers = sorted(rows[0], reverse="" in rows[0]) if rows else ["Col1"]
        lines = [] if headers[0] == "H1" and "" not in headers else [headers]
        lines += [[row[name] for name in headers] for row in rows]
        extra = ["too much"] if "" in headers else []
        return "\n".join(",".join([*line, *(extra if line is not headers else [])]) for line in lines)

    def _s3_putObject(self, parameters: Any) -> Any:  # noqa: N802
        body = parameters["Body"]
        raw = (body if isinstance(body, str) else to_text(body)).encode()
        return {
            "ChecksumCRC32": base64.b64encode(zlib.crc32(raw).to_bytes(4, "big")).decode(),
            "ChecksumType": "FULL_OBJECT",
            "ETag": f'"{hashlib.md5(raw, usedforsecurity=False).hexdigest()}"',
            "ServerSideEncryption": "AES256",
        }
