"""`start`: a request or a schedule starts one run, and asked again only what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.errors import RequestError, StoreUnavailable
from trueup.model.states import RunStatus

from .handler_world import World, dying_at
from .worker_cases import Died, job_file, job_of

NIGHT = {
    "schedule": "nightly",
    "scheduledTime": "2026-07-06T01:00:00Z",
    "request": {"job": "numbers", "keys": ["a"]},
}


def world() -> World:
    """A world with the small job of the worker's tests."""
    return World(job_of(), job_file())


def request(**changes: Any) -> dict[str, Any]:
    """A request as the API hands it on."""
    return {"job": "numbers", "requestId": "r-1", "requester": "ann", "keys": ["a"], **changes}


def test_two_requests_with_one_id_start_one_run() -> None:
    here = world()
    first, second = here.start.handle(request()), here.start.handle(request())
    assert first == second
    assert [first["execution"]] == list(here.steps.executions)
    assert [first["runId"]] == list(here.ledger.runs.unsettled())


def test_an_id_that_asked_for_something_else_is_refused() -> None:
    here = world()
    here.start.handle(request())
    with pytest.raises(RequestError, match="Use a new request id"):
        here.start.handle(request(keys=["b"]))
    assert 1 == len(here.steps.executions)


def test_an_id_that_asked_for_another_canary_is_refused() -> None:
    here = world()
    first = here.start.handle(request(keys=["a", "b", "c"], canary=1))
    with pytest.raises(RequestError, match=r"another canary \(1, not 2\)"):
        here.start.handle(request(keys=["a", "b", "c"], canary=2))
    assert first == here.start.handle(request(keys=["a", "b", "c"], canary=1))
    assert 1 == len(here.steps.executions)


@pytest.mark.parametrize("event", [request(), NIGHT])
def test_dying_anywhere_and_asked_again_it_starts_what_is_missing(event: dict[str, Any]) -> None:
    here = world()
    dying_at(here, 1)
    with pytest.raises(Died):
        here.start.handle(event)
    here.table.dies_at = 0
    assert {} == here.steps.executions
    told = here.start.handle(event)
    assert [told["execution"]] == list(here.steps.executions)
    assert {"runId": told["runId"], "generation": 1} == here.steps.executions[told["execution"]].data


def test_an_execution_that_could_not_be_started_is_started_when_asked_again() -> None:
    here = world()
    real, here.steps.start = here.steps.start, unavailable  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        here.start.handle(request())
    here.steps.start = real  # type: ignore[method-assign]
    assert here.start.handle(request())["execution"] in here.steps.executions


def unavailable(*_: Any) -> None:
    raise StoreUnavailable("Step Functions does not answer.")


def test_a_schedule_starts_one_run_for_each_time_however_often_it_is_delivered() -> None:
    here = world()
    told = [here.start.handle(NIGHT) for _ in range(3)]
    later = here.start.handle({**NIGHT, "scheduledTime": "2026-07-07T01:00:00Z"})
    assert {"nightly-2026-07-06T010000Z"} == {one["runId"] for one in told}
    assert "nightly-2026-07-07T010000Z" == later["runId"]
    assert 2 == len(here.steps.executions)
    run = here.run(told[0]["runId"])
    assert ("schedule:nightly", "schedule/nightly/2026-07-06T01:00:00Z") == (run.requester, run.request_id)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schedule", "n" * 41),
        ("schedule", "night/ly"),
        ("schedule", ""),
        ("scheduledTime", "<aws.scheduler.scheduled-time>"),
        ("scheduledTime", "today"),
        ("scheduledTime", ""),
        ("request", {}),
    ],
)
def test_a_schedule_that_cannot_name_an_execution_creates_nothing(field: str, value: Any) -> None:
    here = world()
    with pytest.raises(RequestError, match="job" if field == "request" else field):
        here.start.handle({**NIGHT, field: value})
    assert [] == list(here.ledger.runs.unsettled())


def test_a_run_that_has_ended_is_given_and_not_started_again() -> None:
    here = world()
    run = here.ask()
    here.play(here.execution(run))
    told = here.start.handle(request(keys=["a", "b", "c"]))
    assert (run.run_id, RunStatus.SUCCEEDED) == (told["runId"], told["status"])
    assert [run.execution] == here.steps.starts


def test_a_sample_needs_a_secret_that_cannot_write() -> None:
    here = World(job_of(), job_file(secrets={"write": {"dsn": "numbers/write"}}))
    with pytest.raises(RequestError, match="has no dry run"):
        here.start.handle(request(sample=1))


@pytest.mark.parametrize(
    "event",
    [
        {**NIGHT, "scheduledTime": "2026-99-06T01:00:00Z"},
        {**NIGHT, "scheduledTime": "2026-07-06T25:00:00Z"},
        {**NIGHT, "request": []},
        {**NIGHT, "request": None},
        {name: value for name, value in NIGHT.items() if name != "request"},
        [],
        None,
        "flights",
    ],
)
def test_nonsense_is_refused_in_words_and_creates_nothing(event: Any) -> None:
    here = world()
    with pytest.raises(RequestError, match=r"object|no time such as"):
        here.start.handle(event)
    assert ([], {}) == (list(here.ledger.runs.unsettled()), here.steps.executions)
