"""Variables: their names, and that no inner scope takes a name of an outer one ([dg:workflow-variables])."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trueup.local.stepfunctions.errors import Problem
from trueup.local.stepfunctions.model import Choice, Fallible, Map, Parallel, State, Workflow
from trueup.local.stepfunctions.parsing.fields import SCHEMA
from trueup.local.stepfunctions.templates import Template

_NAME = re.compile(r"[A-Za-z_]\w{0,79}")
_RESERVED = "states"


def check_variables(
    states: Mapping[str, State], where: str = "", outer: frozenset[str] = frozenset()
) -> Iterator[Problem]:
    """Every problem with the variables of a workflow and of those within it; `outer` are those around it."""
    own: set[str] = set()
    for state in states.values():
        place = f"{where}/States/{state.name}"
        for name in _assigned(state):
            own.add(name)
            yield from _check(name, f"{place}/Assign", outer)
    for state in states.values():
        place = f"{where}/States/{state.name}"
        for inner, field in _within(state):
            yield from check_variables(inner.states, f"{place}/{field}", _seen(state, outer | own))


def _check(name: str, place: str, outer: frozenset[str]) -> Iterator[Problem]:
    if not _NAME.fullmatch(name) or name == _RESERVED:
        yield Problem(SCHEMA, f"'{name}' is not a valid name of a variable", place)
    elif name in outer:
        yield Problem(SCHEMA, f"The variable '{name}' is assigned in an outer scope already", place)


def _seen(state: State, names: frozenset[str]) -> frozenset[str]:
    """What is seen from within: the children of a Distributed Map see no variables of their parent."""
    return frozenset() if isinstance(state, Map) and state.distributed is not None else names


def _assigned(state: State) -> Iterator[str]:
    templates: list[Template | None] = [state.assign]
    if isinstance(state, Choice):
        templates += [rule.assign for rule in state.rules]
    if isinstance(state, Fallible):
        templates += [catcher.assign for catcher in state.catch]
    for template in templates:
        if template is not None:
            yield from (name.removesuffix(".$") for name in template.source)


def _within(state: State) -> Iterator[tuple[Workflow, str]]:
    if isinstance(state, Parallel):
        yield from ((branch, f"Branches[{index}]") for index, branch in enumerate(state.branches))
    elif isinstance(state, Map):
        yield state.processor, "ItemProcessor"
