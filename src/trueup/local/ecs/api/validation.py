"""Checks of a request against the service's own model, before the operation sees it.

A value of a wrong type is refused as AWS refuses it, `STRING_VALUE cannot be converted to Integer`
(aws-actions/amazon-ecs-deploy-task-definition#587), with the place, which AWS leaves to be found. What is
missing, unknown or not among the values is refused in words of ours: those of AWS were not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import botocore.session
from botocore.model import OperationModel, ServiceModel, Shape

from trueup.local.ecs.errors import ApiError, invalid
from trueup.local.ecs.run_request import MAX_TAGS
from trueup.local.stepfunctions.values import is_integer, is_number

MAX_KEY, MAX_VALUE = 128, 256
AWS_OWN = "aws:"

_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "string": (lambda value: isinstance(value, str), "String"),
    "boolean": (lambda value: isinstance(value, bool), "Boolean"),
    "integer": (lambda value: is_integer(value) and abs(value) < 2**31, "Integer"),
    "long": (lambda value: is_integer(value) and abs(value) < 2**63, "Long"),
    "float": (is_number, "Float"),
    "double": (is_number, "Double"),
    "list": (lambda value: isinstance(value, list), "List"),
    "structure": (lambda value: isinstance(value, dict), "Structure"),
    "map": (lambda value: isinstance(value, dict), "Map"),
}
_NAMED = {"Tag": ("key",), "KeyValuePair": ("name",)}
"""Shapes that mean nothing without a member which the model does not require."""
_TOKENS = {str: "STRING_VALUE", int: "NUMBER_VALUE", float: "NUMBER_VALUE", list: "LIST", dict: "STRUCTURE"}


@cache
def _model() -> ServiceModel:
    return botocore.session.Session().get_service_model("ecs")


@cache
def operation_model(operation: str) -> OperationModel:
    """An operation as the service's model describes it. Raises botocore's OperationNotFoundError."""
    return _model().operation_model(operation)


def check_request(operation: str, body: Mapping[str, Any]) -> None:
    """Raises ApiError: SerializationException for a wrong type, InvalidParameterException for the rest."""
    shape = operation_model(operation).input_shape
    problems = [] if shape is None else list(_problems(shape, body, ""))
    if problems:
        raise invalid("; ".join(problems))


def _problems(shape: Shape, value: Any, where: str) -> Iterator[str]:
    """What is wrong with a value. Raises ApiError where its type is."""
    fits, kind = _KINDS[shape.type_name]
    if not fits(value):
        raise ApiError(
            "SerializationException", f"{_token(value)} cannot be converted to {kind} (at {where})"
        )
    if shape.type_name == "structure":
        yield from _structure(shape, value, where)
    elif shape.type_name == "list":
        if shape.name == "Tags" and len(value) > MAX_TAGS:
            yield f"{where} can have at most {MAX_TAGS} items."
        for index, item in enumerate(value):
            yield from _problems(shape.member, item, f"{where}[{index}]")
    elif shape.type_name == "map":
        for name, item in value.items():
            yield from _problems(shape.value, item, f"{where}.{name}")
    elif (allowed := getattr(shape, "enum", None)) and value not in allowed:
        yield f"{where} must be one of {', '.join(allowed)}, and is {value}"


def _structure(shape: Shape, value: Mapping[str, Any], where: str) -> Iterator[str]:
    prefix = f"{where}." if where else ""
    if shape.name == "Tag":
        yield from _tag(value, prefix)
    for name in sorted(value.keys() - set(shape.members)):
        yield f"{prefix}{name} is no parameter; there are {', '.join(shape.members)}"
    for name, member in shape.members.items():
        if value.get(name) is not None:
            yield from _problems(member, value[name], f"{prefix}{name}")
        elif name in [*shape.required_members, *_NAMED.get(shape.name, ())]:
            yield f"{prefix}{name} can not be blank."


def _tag(value: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """What a tag breaks of the restrictions that the shape Tag names ([botocore ecs])."""
    for name, most in (("key", MAX_KEY), ("value", MAX_VALUE)):
        text = str(value.get(name, ""))
        if len(text) > most:
            yield f"{prefix}{name} can have at most {most} characters."
        if text.lower().startswith(AWS_OWN):
            yield f"{prefix}{name} cannot begin with {AWS_OWN}, which is reserved for AWS."


def _token(value: Any) -> str:
    """What JSON calls a value."""
    if value is None or isinstance(value, bool):
        return f"{str(value).upper()}_VALUE".replace("NONE", "NULL")
    return _TOKENS[type(value)]
