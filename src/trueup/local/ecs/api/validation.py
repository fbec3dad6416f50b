"""Checks of a request against the service's own model, before the operation sees it.

What is missing, of a wrong type, out of range or not among the values is refused with the place where it is.
The words are botocore's and ours: those of AWS's front end for ECS were not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import botocore.session
from botocore.model import OperationModel, ServiceModel, Shape
from botocore.validate import ParamValidator

from trueup.local.ecs.errors import invalid


@cache
def _model() -> ServiceModel:
    return botocore.session.Session().get_service_model("ecs")


@cache
def operation_model(operation: str) -> OperationModel:
    """An operation as the service's model describes it. Raises botocore's OperationNotFoundError."""
    return _model().operation_model(operation)


def check_request(operation: str, body: Mapping[str, Any]) -> None:
    """Raises ApiError (InvalidParameterException) with all that is wrong."""
    shape = operation_model(operation).input_shape
    if shape is None:
        return
    report = ParamValidator().validate(dict(body), shape)
    problems = [report.generate_report()] if report.has_errors() else list(_choices(shape, body, ""))
    if problems:
        raise invalid("; ".join(problems).replace("\n", "; "))


def _choices(shape: Shape, value: Any, where: str) -> Iterator[str]:
    """Values that are none of an enumeration's. Types were checked before."""
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            if value.get(name) is not None:
                yield from _choices(member, value[name], f"{where}.{name}" if where else name)
    elif shape.type_name == "list":
        for index, item in enumerate(value):
            yield from _choices(shape.member, item, f"{where}[{index}]")
    elif (allowed := getattr(shape, "enum", None)) and value not in allowed:
        yield f"{where} must be one of {', '.join(allowed)}, and is {value}"
