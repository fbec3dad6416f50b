"""Which faults strike whom: by what they are meant for, by the seed, and as often as they should."""

from __future__ import annotations

import threading
from itertools import product
from typing import Any

import pytest

from trueup.local.ecs import REFUSALS, Fate, Launch
from trueup.local.faults.board import Board, Strike, Subject
from trueup.local.faults.callers import Callers
from trueup.local.faults.launches import Launches, subject_of
from trueup.local.faults.model import FaultPlan, OfCallbacks, OfCalls, Refused, Struck, fault

ORDER = '{{"runId": "{run}", "job": "{job}", "launch": {launch}}}'


def board(*faults: Any, seed: int = 1) -> Board:
    return Board(FaultPlan(seed=seed, faults=faults))


def launch(number: int = 1, job: str = "rows", run: str = "r") -> Launch:
    order = ORDER.format(run=run, job=job, launch=number)
    return Launch(f"trueup-{job}-write", 99, {"TRUEUP_ORDER": order}, f"arn:task/{number}")


def rule(*faults: Any, seed: int = 1) -> Launches:
    return Launches(board(*faults, seed=seed), Callers(), "http://gateway")


def struck(given: Board) -> list[int]:
    return [one["struck"] for one in given.told()["faults"]]


def test_a_launch_is_that_of_its_order_and_else_the_families() -> None:
    assert Subject("r", "rows", 3) == subject_of(
        "f", 9, {"TRUEUP_ORDER": ORDER.format(run="r", job="rows", launch=3)}
    )
    assert Subject("r", "rows", 1) == subject_of(
        "f", 9, {"TRUEUP_NAMING": ORDER.format(run="r", job="rows", launch=1)}
    )
    assert Subject(None, "f", 9) == subject_of("f", 9, {})


@pytest.mark.parametrize("order", ["x", "", "[]", "5", "null", "{}", '{"runId": "r", "launch": "1"}'])
def test_what_is_no_order_is_nobodys_launch(order: str) -> None:
    assert Subject(None, "f", 9) == subject_of("f", 9, {"TRUEUP_ORDER": order})


@pytest.mark.parametrize(
    ("which", "job", "number", "run", "expected"),
    [
        ({}, "rows", 1, "r", True),
        ({"job": "rows"}, "rows", 1, "r", True),
        ({"job": "rows"}, "other", 1, "r", False),
        ({"launches": [2, 3]}, "rows", 3, "r", True),
        ({"launches": [2, 3]}, "rows", 1, "r", False),
        ({"run": "r"}, "rows", 1, "r", True),
        ({"run": "r"}, "rows", 1, "s", False),
        ({"job": "rows", "launches": [1], "run": "r"}, "rows", 1, "r", True),
    ],
)
def test_a_fault_strikes_only_whom_it_is_meant_for(
    which: dict[str, Any], job: str, number: int, run: str, expected: bool
) -> None:
    given = rule(fault("throttled", **which))
    assert expected == (given.refuses(launch(number, job, run)) is not None)


def test_a_fault_strikes_as_often_as_it_says() -> None:
    given = rule(fault("throttled", times=2), fault("capacity", times=1))
    refused = [given.refuses(launch()) for _ in range(4)]
    assert [REFUSALS["throttled"], REFUSALS["throttled"], REFUSALS["capacity"], None] == refused
    assert [2, 1] == struck(given.board)


def fates(seed: int, order: list[int]) -> dict[int, Fate]:
    given = rule(
        fault("kill", probability=0.5, after=(0, 9)),
        fault("freeze", probability=0.3, after=1, thaw=(1, 2)),
        fault("cold-start", probability=0.4, seconds=(1, 5)),
        fault("cannot-pull", probability=0.1),
        seed=seed,
    )
    return {number: given.fate(launch(number)) for number in order}


def what(fate: Fate) -> tuple[Any, ...]:
    return fate.cold_start, fate.cannot_pull, fate.kill, fate.freeze, fate.thaw


def test_chance_is_the_same_for_the_same_seed_in_whatever_order_launches_come() -> None:
    forth, back = fates(1, list(range(200))), fates(1, list(reversed(range(200))))
    assert {n: what(one) for n, one in forth.items()} == {n: what(one) for n, one in back.items()}
    assert [what(one) for one in forth.values()] != [what(one) for one in fates(2, list(range(200))).values()]
    kills = [one.kill for one in forth.values() if one.kill is not None]
    assert 70 < len(kills) < 130
    assert all(0 <= kill <= 9 for kill in kills)
    assert len(set(kills)) == len(kills)


def test_a_run_by_the_same_seed_under_another_id_has_the_same_faults() -> None:
    def refusals(run: str) -> list[bool]:
        given = rule(fault("throttled", probability=0.5))
        return [
            given.refuses(launch(number, run=run)) is not None for number, _ in product(range(30), range(3))
        ]

    assert refusals("a") == refusals("b")
    assert {True, False} == set(refusals("a"))


def test_without_faults_nothing_befalls_anybody() -> None:
    given = rule()
    assert (None, False) == (given.refuses(launch()), given.loses("arn"))
    assert what(Fate()) == what(given.fate(launch()))
    assert {} == given.fate(launch()).environment


def test_a_harm_strikes_when_its_moment_comes_and_could_be_done() -> None:
    given = rule(fault("kill", after=3, times=2))
    fate = given.fate(launch())
    assert (3.0, [0]) == (fate.kill, struck(given.board))
    fate.strike("kill", lambda: False)
    assert [0] == struck(given.board)
    for _ in range(3):
        fate.strike("kill", lambda: True)
    assert [2] == struck(given.board)
    assert given.fate(launch()).kill is None


def test_a_harm_that_was_taken_back_meanwhile_is_not_done() -> None:
    given = rule(fault("kill", after=3))
    fate = given.fate(launch())
    given.board.clear()
    done: list[bool] = []
    fate.strike("kill", lambda: not done.append(True))
    assert [] == done


def test_of_two_moments_for_one_harm_the_first_counts_and_others_add_up() -> None:
    fate = rule(fault("kill", after=5), fault("kill", after=2), fault("interrupt", after=1)).fate(launch())
    assert (2.0, 1.0) == (fate.kill, fate.interrupt)


def test_only_whose_calls_shall_fail_goes_through_the_gateway() -> None:
    given = rule(
        fault("call-failed", launches=[1]),
        fault("callback-lost", launches=[2]),
        fault("kill", checkpoint=1, launches=[3]),
        fault("kill", after=1, launches=[4]),
        fault("call-failed", function="accept"),
    )
    led = [set(given.fate(launch(number)).environment) for number in range(1, 5)]
    identity = "AWS_SDK_UA_APP_ID"
    assert [
        {"AWS_ENDPOINT_URL", identity},
        {"AWS_ENDPOINT_URL_SFN", identity},
        {"AWS_ENDPOINT_URL", identity},
        set(),
    ] == led
    known = given.callers.find("Boto3/1.43 app/task-3 md/x")
    assert known is not None
    assert (Subject("r", "rows", 3), "arn:task/3") == (known.subject, known.task)
    assert given.callers.find("Boto3/1.43") is None


@pytest.mark.parametrize(
    ("which", "subject", "expected"),
    [
        ({}, Subject("r", "rows", 1), True),
        ({}, Subject(function="accept"), False),
        ({"function": "accept"}, Subject(function="accept"), True),
        ({"function": "*"}, Subject(function="accept"), True),
        ({"function": "plan"}, Subject(function="accept"), False),
        ({"function": "accept"}, Subject("r", "rows", 1), False),
    ],
)
def test_a_call_that_fails_is_a_tasks_or_a_functions(
    which: dict[str, Any], subject: Subject, expected: bool
) -> None:
    assert expected == bool(board(fault("call-failed", **which)).meant_for(OfCalls, subject))


def test_each_call_of_a_launch_is_drawn_anew() -> None:
    given, subject = board(fault("callback-lost", probability=0.5)), Subject("r", "rows", 1)
    picked = [given.pick(OfCallbacks, subject) is not None for _ in range(40)]
    again = board(fault("callback-lost", probability=0.5))
    assert picked == [again.pick(OfCallbacks, subject) is not None for _ in range(40)]
    assert {True, False} == set(picked)


def test_the_board_tells_what_was_given_and_what_struck() -> None:
    heard: list[Strike] = []
    plan = FaultPlan(seed=7, faults=(fault("throttled", times=1), fault("freeze", after=(1, 2), thaw=3)))
    given = Board(plan, heard.append)
    given.pick(Refused, Subject("r", "rows", 1))
    assert {
        "seed": 7,
        "faults": [
            {"fault": "throttled", "times": 1, "struck": 1},
            {"fault": "freeze", "after": [1.0, 2.0], "thaw": [3.0, 3.0], "struck": 0},
        ],
    } == given.told()
    assert heard == given.strikes() == given.strikes("r")
    assert [] == given.strikes("s")


def test_threads_together_strike_no_more_often_than_they_should() -> None:
    given = board(fault("kill", times=50))
    (one,) = given.meant_for(Struck, Subject("r", "rows", 1))

    def strike() -> None:
        for number in range(100):
            given.strike_if(one, Subject("r", "rows", number), lambda number=number: number % 3 != 0)

    threads = [threading.Thread(target=strike) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [50] == struck(given)
    assert 50 == len(given.strikes())
