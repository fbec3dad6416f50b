"""Values that a service's API does not take, told as the Java SDK's reader of JSON tells them.

AWS builds the request of a Task with Jackson, and what it says reaches the user (aws/aws-cdk#31448). Numbers
and booleans may be given as text, and any value as text where text is wanted (recorded: test_s3_put_object).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trueup.local.stepfunctions.integrations import shapes
from trueup.local.stepfunctions.integrations.shapes import Shape
from trueup.local.stepfunctions.values import Json, is_number, to_text

_CLASSES = {
    "boolean": "java.lang.Boolean",
    "integer": "java.lang.Integer",
    "long": "java.lang.Long",
    "float": "java.lang.Float",
    "double": "java.lang.Double",
    "string": "java.lang.String",
    "character": "java.lang.String",
    "timestamp": "java.time.Instant",
    "blob": "software.amazon.awssdk.core.SdkBytes",
}
_FRACTIONS = ("float", "double")
_WHOLE = ("integer", "long")
_PLAIN = ("boolean", *_WHOLE, *_FRACTIONS)


class Reader:
    """Looks through the parameters of one service's operation."""

    def __init__(self, package: str) -> None:
        """`package` is what the Java SDK calls the service: `dynamodb`."""
        self._package = package

    def problems(self, shape: Shape, value: Json) -> Iterator[str]:
        """Everything that cannot be read. Fields that are still to be evaluated are passed over."""
        if shape is None or value is None:
            return
        match shape.type_name, value:
            case "structure", dict():
                yield from self._members(shape, value)
            case "map", dict():
                for name, item in value.items():
                    yield from self.problems(None if name.endswith(".$") else shape.value, item)
            case "list", list():
                for item in value:
                    yield from self.problems(shape.member, item)
            case (("structure" | "map" | "list"), _):
                yield self._misplaced(shape, value)
            case kind, (dict() | list()) if kind in _PLAIN:
                yield _refused(self._class(shape), value)
            case kind, str():
                yield from _unreadable(kind, value)

    def _members(self, shape: Shape, value: Mapping[str, Json]) -> Iterator[str]:
        known = shapes.members(shape)
        for name, item in value.items():
            member = known.get(shapes.lower(name.removesuffix(".$")))
            if member is None:
                yield f'The field "{name.removesuffix(".$")}" is not supported by Step Functions'
            elif not name.endswith(".$"):
                yield from self.problems(shape.members[member], item)

    def _misplaced(self, shape: Shape, value: Json) -> str:
        if shape.type_name != "structure" or isinstance(value, list):
            return _refused(self._class(shape), value)
        kind, told = _scalar(value)
        return (
            f"Cannot construct instance of `{self._class(shape)}` (although at least one Creator exists): "
            f"no {kind} to deserialize from {told}"
        )

    def _class(self, shape: Shape) -> str:
        match shape.type_name:
            case "structure":
                return f"software.amazon.awssdk.services.{self._package}.model.{shape.name}$BuilderImpl"
            case "list":
                return f"java.util.ArrayList<{self._class(shape.member)}>"
            case "map":
                return f"java.util.LinkedHashMap<java.lang.String,{self._class(shape.value)}>"
            case kind:
                return _CLASSES[kind]


def _scalar(value: Json) -> tuple[str, str]:
    if isinstance(value, str):
        return "String-argument constructor/factory method", f"String value ('{value}')"
    if is_number(value):
        return "int/Int-argument constructor/factory method", f"Number value ({to_text(value)})"
    return "boolean/Boolean-argument constructor/factory method", f"boolean value ({to_text(value)})"


_TOKENS: Mapping[type, tuple[str, str]] = {
    str: ("String", "VALUE_STRING"),
    int: ("Integer", "VALUE_NUMBER_INT"),
    float: ("Floating-point", "VALUE_NUMBER_FLOAT"),
    list: ("Array", "START_ARRAY"),
    dict: ("Object", "START_OBJECT"),
}


def _refused(wanted: str, value: Json) -> str:
    if isinstance(value, bool):
        name, token = "Boolean", f"VALUE_{to_text(value).upper()}"
    else:
        name, token = _TOKENS[type(value)]
    return f"Cannot deserialize value of type `{wanted}` from {name} value (token `JsonToken.{token}`)"


def _unreadable(kind: str, text: str) -> Iterator[str]:
    if kind == "boolean":
        wrong, why = text.lower() not in ("true", "false"), 'only "true" or "false" recognized'
    else:
        wrong = kind in (*_WHOLE, *_FRACTIONS) and not _is_number(kind, text)
        why = f"not a valid `{_CLASSES[kind]}` value"
    if wrong:
        yield f'Cannot deserialize value of type `{_CLASSES[kind]}` from String "{text}": {why}'


def _is_number(kind: str, text: str) -> bool:
    try:
        int(text) if kind in _WHOLE else float(text)
    except ValueError:
        return False
    return True
