"""`aws-sdk:sfn:…`: machines that call Step Functions call the engine that runs them."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING

from trueup.local.stepfunctions.api.operations import perform
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.integrations import shapes
from trueup.local.stepfunctions.integrations.port import Answer, Calls, ServiceFailure
from trueup.local.stepfunctions.values import Json

if TYPE_CHECKING:
    from trueup.local.stepfunctions.engine import Engine


class OwnCalls:
    """Calls to Step Functions answered by an engine, all others passed on."""

    def __init__(self, others: Calls) -> None:
        self._others = others
        self.engine: Engine | None = None
        """Set once the engine exists, which needs these calls to be made."""

    async def call(self, service: str, action: str, parameters: Json) -> Answer:
        """Call an operation. Raises ServiceFailure."""
        if service != "stepfunctions" or self.engine is None:
            return await self._others.call(service, action, parameters)
        operation = shapes.operation(service, action)
        body = shapes.to_api(operation.input_shape, parameters)
        request_id = self.engine.request_id()
        try:
            answer = perform(self.engine, operation.name, body)
            return Answer(await answer if isawaitable(answer) else answer, {}, request_id)
        except ApiError as error:
            raise ServiceFailure(error.name, error.message, request_id=request_id) from error
