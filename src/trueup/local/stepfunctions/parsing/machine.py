"""A whole definition: its text, its states and the ways between them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from trueup.local.stepfunctions.errors import DefinitionError, Problem
from trueup.local.stepfunctions.model import (
    Choice,
    Fail,
    Fallible,
    Machine,
    Map,
    Parallel,
    State,
    Succeed,
    Workflow,
)
from trueup.local.stepfunctions.parsing.failing import MAX_SECONDS
from trueup.local.stepfunctions.parsing.fields import SCHEMA, Fields
from trueup.local.stepfunctions.parsing.maps import check_express
from trueup.local.stepfunctions.parsing.states import parse_state
from trueup.local.stepfunctions.parsing.variables import check_variables
from trueup.local.stepfunctions.values import from_text

MAX_DEFINITION = 1_048_576
"""Characters of a definition: botocore's `Definition`."""
_TARGET = "MISSING_TRANSITION_TARGET"


def parse_definition(text: str, *, express: bool = False) -> Machine:
    """The machine that a definition describes, for executions that may be Express ones.

    Raises DefinitionError with every problem found.
    """
    try:
        raw = from_text(text, unique=True)
    except ValueError as error:
        raise DefinitionError([Problem("INVALID_JSON_DESCRIPTION", str(error), "/")]) from error
    if len(text) > MAX_DEFINITION:
        raise DefinitionError([Problem(SCHEMA, f"more than {MAX_DEFINITION} characters", "/")])
    problems: list[Problem] = []
    fields = Fields(raw, "", problems, "The state machine")
    fields.one_of("QueryLanguage", ("JSONPath",), "JSONPath")
    fields.one_of("Version", ("1.0",), "1.0")
    timeout = fields.integer("TimeoutSeconds", 1, MAX_SECONDS)
    workflow = _workflow(fields, set())
    problems += check_variables(workflow.states)
    problems += _check_labels(workflow)
    if express:
        check_express(fields, workflow)
    if problems:
        raise DefinitionError(problems)
    return Machine(
        start_at=workflow.start_at,
        states=workflow.states,
        timeout=timeout,
        comment=fields.text("Comment"),
        source=raw,
    )


def _workflow(fields: Fields, taken: set[str]) -> Workflow:
    """States with their start, whether of the machine or inside one of its states.

    `taken` are the names of all states read so far: one is given once in the whole machine.
    """
    start_at = fields.text("StartAt", required=True) or ""
    inner = fields.inner("States")
    if fields.has("States") and not inner.raw:
        inner.problem(SCHEMA, "The object has to have at least one state")
    for name in taken & set(inner.raw):
        # AWS's own words (aws-cloudformation/cfn-lint#3616).
        inner.problem("DUPLICATE_STATE_NAME", f"Duplicate State name: {name}", name)
    taken |= set(inner.raw)
    parse_inner = partial(_workflow, taken=taken)
    states = {
        name: parse_state(
            name, Fields(raw, f"{inner.location}/{name}", fields.problems, f"State '{name}'"), parse_inner
        )
        for name, raw in inner.raw.items()
    }
    fields.finish()
    _check_ways(fields, start_at, states)
    return Workflow(start_at=start_at, states=states, source=fields.raw)


def _check_labels(workflow: Workflow) -> Iterator[Problem]:
    """A label names the children of its Map Run, so it is given once in the whole machine."""
    taken: set[str] = set()
    for label, place in _labels(workflow, ""):
        if label in taken:
            yield Problem("DUPLICATE_LABEL_NAME", f"Duplicate Label name: {label}", place)
        taken.add(label)


def _labels(workflow: Workflow, place: str) -> Iterator[tuple[str, str]]:
    for name, state in workflow.states.items():
        here = f"{place}/States/{name}"
        if isinstance(state, Map):
            if state.distributed is not None and state.distributed.label is not None:
                yield state.distributed.label, f"{here}/Label"
            yield from _labels(state.processor, f"{here}/ItemProcessor")
        elif isinstance(state, Parallel):
            for index, branch in enumerate(state.branches):
                yield from _labels(branch, f"{here}/Branches[{index}]")


def _check_ways(fields: Fields, start_at: str, states: dict[str, State]) -> None:
    # What leads nowhere because it is not there at all has been told.
    if states and start_at not in states and start_at:
        fields.problem(_TARGET, f"Missing 'Next' target: {start_at}", "StartAt")
    for state in states.values():
        for field, target in _ways(state):
            if target not in states and (target or field == "Default"):
                fields.problem(_TARGET, f"Missing 'Next' target: {target}", f"States/{state.name}/{field}")
    if states and not any(map(_ends, states.values())):
        # AWS's own words, and nowhere in particular; it looks no further (measured: floci-io/floci#2786).
        fields.problems.append(Problem("MISSING_END_STATE", "Workflow has no terminal state", None))
        return
    for name in _unreachable(start_at, states) if start_at else ():
        fields.problem(_TARGET, f'State "{name}" is not reachable.', f"States/{name}")


def _ways(state: State) -> Iterator[tuple[str, str]]:
    if state.next is not None:
        yield "Next", state.next
    if isinstance(state, Choice):
        yield from ((f"Choices[{index}]/Next", rule.next) for index, rule in enumerate(state.rules))
        if state.default is not None:
            yield "Default", state.default
    if isinstance(state, Fallible):
        yield from ((f"Catch[{index}]/Next", catcher.next) for index, catcher in enumerate(state.catch))


def _unreachable(start_at: str, states: dict[str, State]) -> list[str]:
    """The states that nothing leads to, without what only they lead to (aws-cloudformation/cfn-lint#4264)."""
    reached = _reach(start_at, states)
    lost = [name for name in states if name not in reached]
    led_to = {target for state in states.values() for _, target in _ways(state)}
    return [name for name in lost if name not in led_to] or lost


def _reach(start_at: str, states: dict[str, State]) -> set[str]:
    reached: set[str] = set()
    waiting = [start_at]
    while waiting:
        name = waiting.pop()
        if name in states and name not in reached:
            reached.add(name)
            waiting += [target for _, target in _ways(states[name])]
    return reached


def _ends(state: State) -> bool:
    return isinstance(state, Succeed | Fail) or (state.next is None and not isinstance(state, Choice))
