"""Which variables the states of a definition refer to ([botocore] variableReferences)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trueup.local.stepfunctions.values import Json

_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'")
_VARIABLE = re.compile(r"(?<![\w$.])\$([A-Za-z_]\w*)")
_WITHIN = ("Branches", "ItemProcessor", "Iterator")
"""Fields that hold states of their own."""


def variable_references(definition: Json) -> dict[str, list[str]]:
    """The variables by the name of the state that refers to them, states within others too."""
    return {name: variables for name, variables in _of_states(definition) if variables}


def _of_states(workflow: Mapping[str, Json]) -> Iterator[tuple[str, list[str]]]:
    for name, state in workflow["States"].items():
        own = {field: value for field, value in state.items() if field not in _WITHIN}
        yield name, list(dict.fromkeys(_of_fields(own)))
        inner = [*state.get("Branches", ()), *(state[field] for field in _WITHIN[1:] if field in state)]
        for each in inner:
            yield from _of_states(each)


def _of_fields(value: Json) -> Iterator[str]:
    """Variables in whatever is evaluated: paths, and fields of templates."""
    if isinstance(value, dict):
        for field, inner in value.items():
            evaluated = field.endswith((".$", "Path")) or field == "Variable"
            if evaluated and isinstance(inner, str):
                yield from _VARIABLE.findall(_LITERAL.sub("", inner))
            else:
                yield from _of_fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_fields(inner)
