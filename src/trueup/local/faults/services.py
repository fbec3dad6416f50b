"""What a request to AWS asks for, and how DynamoDB and S3 say that it was not done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from trueup.local.faults.http import Call, Reply, reply

# DynamoDB: developer guide, "Error handling with DynamoDB", error messages and codes.
# S3: API reference, "Error responses", list of error codes.
_REFUSALS: Mapping[tuple[str, str], tuple[int, str, str]] = {
    ("dynamodb", "call-throttled"): (
        400,
        "ProvisionedThroughputExceededException",
        "The level of configured provisioned throughput for the table was exceeded.",
    ),
    ("dynamodb", "call-failed"): (500, "InternalServerError", "The server encountered an internal error."),
    ("s3", "call-throttled"): (503, "SlowDown", "Please reduce your request rate."),
    ("s3", "call-failed"): (500, "InternalError", "We encountered an internal error. Please try again."),
}
_WITH_QUERY = [
    ("POST", "uploads", "CreateMultipartUpload"),
    ("PUT", "partNumber", "UploadPart"),
    ("POST", "uploadId", "CompleteMultipartUpload"),
    ("DELETE", "uploadId", "AbortMultipartUpload"),
    ("GET", "list-type", "ListObjectsV2"),
    ("POST", "delete", "DeleteObjects"),
]
_OF_OBJECTS = {"GET": "GetObject", "PUT": "PutObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}
_CHECKPOINTED = "cursor"


def operation_of(call: Call, service: str) -> str:
    """What is asked for, as the service's API names it; of S3 objects what is common."""
    if service != "s3":
        return call.header("x-amz-target").rpartition(".")[2]
    parts = urlsplit(call.target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    for method, parameter, operation in _WITH_QUERY:
        if method == call.method and parameter in query:
            return operation
    return (
        _OF_OBJECTS.get(call.method, call.method) if "/" in parts.path.strip("/") else f"{call.method} bucket"
    )


def refusal(service: str, fault: str) -> Reply:
    """How a service says that it is throttled, or has failed."""
    status, code, message = _REFUSALS[service, fault]
    if service == "s3":
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
        return reply(status, text.encode(), "application/xml")
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}
    return reply(status, json.dumps(body).encode(), "application/x-amz-json-1.0")


def is_checkpoint(call: Call, operation: str) -> bool:
    """Whether a request of a task moves a partition's cursor in the ledger."""
    if operation != "UpdateItem":
        return False
    body: dict[str, Any] = json.loads(call.body)
    key = body.get("Key", {}).get("SK", {}).get("S", "")
    return key.startswith("PART#") and _CHECKPOINTED in body.get("ExpressionAttributeNames", {}).values()
