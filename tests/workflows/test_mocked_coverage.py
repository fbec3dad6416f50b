"""The cases leave nothing out: a new state, way, error or answer without a case fails here.

Computed from the definitions and from the histories that our endpoint writes of all cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from .mocked import Ran, Visit, definition, own_endpoint, run
from .mocked_cases import CASES, MACHINES

Rule = tuple[str, str, int, str]
"""State, Retry or Catch, the number of the entry, and the error."""


@pytest.fixture(scope="module")
def ran() -> dict[str, list[Ran]]:
    """All cases, played."""
    with own_endpoint() as sfn:
        return {
            machine: [run(sfn, machine, case.name, case.given) for case in CASES if case.machine == machine]
            for machine in MACHINES
        }


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_state_is_entered(machine: str, ran: dict[str, list[Ran]]) -> None:
    assert set(definition(machine)["States"]) == {name for one in ran[machine] for name in one.path}


def test_every_way_is_taken(machine: str, ran: dict[str, list[Ran]]) -> None:
    taken = {pair for one in ran[machine] for pair in pairwise(one.path)}
    assert set() == set(ways(machine)) - taken


def ways(machine: str) -> Iterator[tuple[str, str]]:
    """Each state with each state that it leads to."""
    for name, one in definition(machine)["States"].items():
        nexts = [one, *one.get("Choices", []), *one.get("Catch", [])]
        yield from ((name, way["Next"]) for way in nexts if "Next" in way)
        if "Default" in one:
            yield name, one["Default"]


def test_every_rule_of_a_choice_holds_in_a_case(machine: str, ran: dict[str, list[Ran]]) -> None:
    held, there = set(), set()
    for visit, _ in visits_with_next(ran[machine]):
        for position, rule in enumerate(definition(machine)["States"][visit.name].get("Choices", [])):
            there.add((visit.name, position))
            if holds(rule, visit.given):
                held.add((visit.name, position))
    assert set() == there - held


def holds(rule: dict[str, Any], given: Any) -> bool:
    """Whether a rule does, of the one kind that our machines have."""
    assert {"Variable", "StringEquals", "Next"} == set(rule), "teach this test the new comparison"
    for name in rule["Variable"].split(".")[1:]:
        given = given[name]
    return bool(given == rule["StringEquals"])


def test_every_error_that_is_named_is_met_and_retried_or_caught(
    machine: str, ran: dict[str, list[Ran]]
) -> None:
    assert set() == set(rules(machine)) - set(rules_used(machine, ran[machine]))


def test_every_retry_is_exhausted(machine: str, ran: dict[str, list[Ran]]) -> None:
    retrying = {
        (name, position, entry["MaxAttempts"])
        for name, one in definition(machine)["States"].items()
        for position, entry in enumerate(one.get("Retry", []))
    }
    assert set() == retrying - set(exhausted(machine, ran[machine]))


def rules(machine: str) -> Iterator[Rule]:
    """All that the definition says about errors."""
    for name, one in definition(machine)["States"].items():
        for kind in ("Retry", "Catch"):
            for position, entry in enumerate(one.get(kind, [])):
                yield from ((name, kind, position, error) for error in entry["ErrorEquals"])


def rules_used(machine: str, executions: list[Ran]) -> Iterator[Rule]:
    """What of it the histories show at work: a failure with another attempt after it, or with its way out."""
    for visit, then in visits_with_next(executions):
        one = definition(machine)["States"][visit.name]
        for error, _ in visit.failures[: visit.attempts - 1]:
            position, named = rule_for(one["Retry"], error)
            yield visit.name, "Retry", position, named
        if visit.failures and not visit.succeeded and then:
            position, named = rule_for(one["Catch"], visit.failures[-1][0])
            assert one["Catch"][position]["Next"] == then
            yield visit.name, "Catch", position, named


def exhausted(machine: str, executions: list[Ran]) -> Iterator[tuple[str, int, int]]:
    """The entries of Retry that were used up, and by how many attempts after the first."""
    for visit, _ in visits_with_next(executions):
        if len(visit.failures) > 1 and not visit.succeeded:
            retry = definition(machine)["States"][visit.name]["Retry"]
            yield visit.name, rule_for(retry, visit.failures[-1][0])[0], len(visit.failures) - 1


def visits_with_next(executions: list[Ran]) -> Iterator[tuple[Visit, str | None]]:
    """Each visit with the state that came after it."""
    for one in executions:
        yield from zip(one.visits, [*one.path[1:], None], strict=True)


def rule_for(entries: list[dict[str, Any]], error: str) -> tuple[int, str]:
    """The first entry that an error matches, and the name by which it does. Fails where there is none."""
    for position, entry in enumerate(entries):
        for named in entry["ErrorEquals"]:
            every = named == "States.TaskFailed" and error != "States.Timeout"
            if every or named in (error, "States.ALL"):
                return position, named
    pytest.fail(f"{error} was tried again or caught, and no rule names it")
