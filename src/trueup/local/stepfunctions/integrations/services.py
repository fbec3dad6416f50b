"""Integrations that make one call: dynamodb, sqs, sns, events, and aws-sdk for everything else."""

from __future__ import annotations

from dataclasses import replace

from trueup.local.stepfunctions.errors import StateError
from trueup.local.stepfunctions.integrations import shapes
from trueup.local.stepfunctions.integrations.catalogue import find_service
from trueup.local.stepfunctions.integrations.failures import optimized_error, sdk_error
from trueup.local.stepfunctions.integrations.metadata import metadata
from trueup.local.stepfunctions.integrations.port import Calls, Request, ServiceFailure, Started
from trueup.local.stepfunctions.values import Document, Json, to_text


class OneCall:
    """An optimized integration: the answer in PascalCase, with AWS's metadata blocks."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def start(self, request: Request) -> Started:
        """Make the call. Raises StateError (`DynamoDB.ConditionalCheckFailedException` and its like)."""
        return Started(Document(await self.call(request)))

    async def call(self, request: Request) -> dict[str, Json]:
        """The answer as a state's output."""
        resource = request.resource
        service = find_service(resource)
        try:
            answer = await self._calls.call(service.boto, resource.action, request.parameters)
        except ServiceFailure as failure:
            raise optimized_error(service, failure) from failure
        shape = shapes.operation(service.boto, resource.action).output_shape
        output = shapes.to_state(shape, answer.output, sdk=False)
        return dict(sorted({**output, **metadata(resource.service, answer)}.items()))


class PutEvents(OneCall):
    """`events:putEvents`: adds to each entry's Resources who sends it, and fails when EventBridge did not
    take every entry ([dg:connect-eventbridge]).
    """

    async def start(self, request: Request) -> Started:
        """Make the call. Raises StateError (`EventBridge.FailedEntry`)."""
        output = await self.call(replace(request, parameters=_with_sender(request)))
        if output.get("FailedEntryCount"):
            answered = {name: output[name] for name in ("Entries", "FailedEntryCount") if name in output}
            raise StateError("EventBridge.FailedEntry", to_text(answered))
        return Started(Document(output))


def _with_sender(request: Request) -> Json:
    senders = [request.execution_arn, request.machine_arn]
    entries = request.parameters.get("Entries")
    if not isinstance(entries, list):
        return request.parameters
    added = [
        {**entry, "Resources": [*(entry.get("Resources") or []), *senders]}
        if isinstance(entry, dict)
        else entry
        for entry in entries
    ]
    return {**request.parameters, "Entries": added}


class SdkCall:
    """`aws-sdk:<service>:<action>`: the answer alone, without metadata (recorded: services/test_aws_sdk…)."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def start(self, request: Request) -> Started:
        """Make the call. Raises StateError (`DynamoDb.ResourceNotFoundException` and its like)."""
        resource = request.resource
        service, parameters = find_service(resource), request.parameters
        if (service.boto, resource.action) == ("s3", "putObject"):
            # The Java SDK's type of text (recorded on AWS: test_s3_put_object).
            parameters = {"ContentType": "text/plain; charset=UTF-8", **parameters}
        try:
            answer = await self._calls.call(service.boto, resource.action, parameters)
        except ServiceFailure as failure:
            raise sdk_error(service, failure) from failure
        shape = shapes.operation(service.boto, resource.action).output_shape
        return Started(Document(shapes.to_state(shape, answer.output, sdk=True)))
