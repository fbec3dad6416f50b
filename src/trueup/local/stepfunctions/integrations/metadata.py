"""The metadata blocks that AWS puts into the output of optimized integrations.

Which headers they list, in which spelling, is taken from executions recorded on AWS (test_send_message,
test_publish_base, test_base_integrations, test_start_execution, lambda's test_invoke_bytes_payload).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from email.utils import formatdate

from trueup.local.stepfunctions.integrations.port import Answer
from trueup.local.stepfunctions.values import Json

_JSON = "application/x-amz-json-1.0"
_LISTED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "dynamodb": (
        ("Server", "Server"),
        ("Connection", "keep-alive"),
        ("x-amzn-RequestId", ""),
        ("x-amz-crc32", ""),
        ("Content-Length", "0"),
        ("Date", ""),
        ("Content-Type", _JSON),
    ),
    "lambda": (
        ("X-Amz-Executed-Version", "$LATEST"),
        ("x-amzn-Remapped-Content-Length", "0"),
        ("Connection", "keep-alive"),
        ("x-amzn-RequestId", ""),
        ("Content-Length", "0"),
        ("Date", ""),
        ("X-Amzn-Trace-Id", "root=1-00000000-000000000000000000000000;sampled=0"),
        ("Content-Type", "application/json"),
    ),
}
_COMMON = (
    ("x-amzn-RequestId", ""),
    ("connection", "keep-alive"),
    ("Content-Length", "0"),
    ("Date", ""),
    ("Content-Type", _JSON),
)
_TYPES = {"sns": "text/xml", "ecs": "application/x-amz-json-1.1", "events": "application/x-amz-json-1.1"}
_KEPT = ("content-length", "x-amzn-trace-id")
"""Headers whose value is the answer's own, not a constant."""


def metadata(service: str, answer: Answer) -> dict[str, Json]:
    """`SdkHttpMetadata` and `SdkResponseMetadata`."""
    headers = {name: _value(service, name, value, answer) for name, value in _LISTED.get(service, _COMMON)}
    if "LogResult" in answer.output:
        headers["X-Amz-Log-Result"] = answer.output["LogResult"]
    return {
        "SdkHttpMetadata": {
            "AllHttpHeaders": {name: [value] for name, value in headers.items()},
            "HttpHeaders": dict(sorted(headers.items(), key=lambda header: header[0].lower())),
            "HttpStatusCode": answer.status,
        },
        "SdkResponseMetadata": {"RequestId": answer.request_id},
    }


def _value(service: str, name: str, value: str, answer: Answer) -> str:
    match name.lower():
        case "x-amzn-requestid":
            return answer.request_id
        case "date":
            return formatdate(usegmt=True)
        case "x-amz-executed-version":
            return str(answer.output.get("ExecutedVersion", value))
        case "x-amz-crc32":
            return answer.headers.get("x-amz-crc32", str(zlib.crc32(answer.request_id.encode())))
        case "content-type":
            return _TYPES.get(service, value)
        case lowered if lowered in _KEPT:
            return answer.headers.get(lowered, value)
        case _:
            return value
