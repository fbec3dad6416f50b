"""What the functions measure of runs, launches and gates: each thing once, under the page's dimensions."""

from __future__ import annotations

from typing import Any

from trueup.errors import StoreUnavailable
from trueup.metrics import FUNCTION_METRICS

from .handler_world import World
from .test_api_gates import Waiting
from .worker_cases import job_file, job_of


def played() -> Waiting:
    """A run that waited for a person for an hour, while the sweep came by twice, and then went to its end."""
    here = Waiting()
    world = here.world
    world.sweep.handle({})
    world.clock.pass_(3600)
    world.sweep.handle({})
    for _ in range(2):  # an answer that was lost is asked for again
        assert 200 == here.client.call("POST", here.path("approve"), **here.word())[0]
    world.play(here.execution)
    world.sweep.handle({})
    return here


def test_a_run_that_is_asked_for_twice_is_started_once() -> None:
    here = World(job_of(), job_file())
    here.ask()
    here.ask()
    assert [(1, {"job": "numbers"})] == here.metrics.of("RunsStarted")


def test_a_run_its_launches_and_its_end_are_measured_once() -> None:
    here = World(job_of(), job_file())
    run = here.ask()
    heard: list[dict[str, Any]] = []
    handle = here.accept.handle
    here.accept = Twice(handle, heard)  # type: ignore[assignment]
    here.play(here.execution(run))
    ended = {"job": "numbers", "status": "SUCCEEDED"}
    assert [(1, ended)] == here.metrics.of("RunsEnded")
    assert [(here.run(run.run_id).open_seconds, ended)] == here.metrics.of("RunSeconds")
    each = {"job": "numbers", "phase": "apply", "answer": "done"}
    assert [(1, each)] * here.run(run.run_id).launches == here.metrics.of("LaunchesEnded")
    assert len(heard) == 2 * len(here.metrics.of("LaunchesEnded"))


class Twice:
    """A function that is called again with what it answered already."""

    def __init__(self, handle: Any, heard: list[dict[str, Any]]) -> None:
        self._handle = handle
        self._heard = heard

    def handle(self, event: dict[str, Any]) -> dict[str, Any]:
        """The second answer."""
        self._heard += [self._handle(event), self._handle(event)]
        return self._heard[-1]


def test_a_gate_is_measured_while_it_waits_and_once_when_it_is_decided() -> None:
    metrics = played().world.metrics
    assert [1, 1, 0] == [value for value, _ in metrics.of("GatesWaiting")]
    first, second, last = (value for value, _ in metrics.of("GateWaitingSeconds"))
    assert (3600, 0) == (second - first, last)
    ((age, by),) = metrics.of("GateDecidedSeconds")
    assert ({"job": "numbers", "status": "APPROVED"}, second) == (by, age)
    assert [(1, by)] == metrics.of("GatesDecided")


def test_the_sweep_measures_what_it_looked_after_and_what_it_could_not() -> None:
    here = World(job_of(), job_file())
    here.ask()
    here.sweep.handle({})
    here.steps.status = lambda name: (_ for _ in ()).throw(StoreUnavailable("away"))  # type: ignore[method-assign]
    here.sweep.handle({})
    assert [1, 1] == [value for value, _ in here.metrics.of("RunsUnsettled")]
    assert [0, 1] == [value for value, _ in here.metrics.of("RunsNotLookedAfter")]


def test_every_metric_of_functions_comes_under_its_dimensions_and_none_besides() -> None:
    seen = {name: ", ".join(by) or "none" for values, by in played().world.metrics.lines for name in values}
    assert {name: dimensions for name, (_, dimensions, _) in FUNCTION_METRICS.items()} == seen
