"""Retry and Catch: order, counts, waits, and which names match ([dg:concepts-error-handling])."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.errors import StateError
from trueup.local.stepfunctions.model import Retrier
from trueup.local.stepfunctions.retry import Retries, matches

from .harness import Services, execute, machine, passing, refuse

PUT = {
    "Type": "Task",
    "Resource": "arn:aws:states:::dynamodb:getItem",
    "Parameters": {"TableName": "t", "Key": {}},
}
MISSING = "DynamoDB.ResourceNotFoundException"


def failing(times: int, then: Any = None) -> Services:
    """DynamoDB refuses that many times."""
    left = [times]
    no: Callable[[Any], Any] = refuse("ResourceNotFoundException")

    def answer(parameters: Any) -> Any:
        if left[0] == 0:
            return then or {}
        left[0] -= 1
        return no(parameters)

    return Services(dynamodb_getItem=answer)


def delays(retrier: Retrier, count: int, seed: int = 1) -> list[float | None]:
    retries = Retries([retrier], Chance(seed))
    return [retries.next_delay(StateError("X")) for _ in range(count)]


def test_by_default_three_attempts_follow_after_1_2_and_4_seconds() -> None:
    assert [1, 2, 4, None] == delays(Retrier(errors=("X",)), 4)


def test_max_delay_bounds_the_growth() -> None:
    assert [10, 20, 25, 25] == delays(Retrier(errors=("X",), interval=10, max_delay=25, attempts=9), 4)


def test_full_jitter_waits_between_nothing_and_the_delay() -> None:
    retrier = Retrier(errors=("X",), interval=100, backoff=1, attempts=50, jitter=True)
    waits = [wait for wait in delays(retrier, 50) if wait is not None]
    assert all(0 <= wait <= 100 for wait in waits)
    assert min(waits) < 20 < 80 < max(waits)


def test_each_retrier_counts_its_own_and_the_first_that_matches_decides() -> None:
    retries = Retries(
        [Retrier(errors=("A",), attempts=1), Retrier(errors=("States.ALL",), interval=9, attempts=1)],
        Chance(1),
    )
    errors = ["A", "A", "B", "B"]
    assert [1, None, 9, None] == [retries.next_delay(StateError(error)) for error in errors]


@pytest.mark.parametrize(
    ("expected", "names", "error"),
    [
        (True, ["States.ALL"], "Anything"),
        (True, ["States.ALL"], "States.Timeout"),
        (False, ["States.ALL"], "States.DataLimitExceeded"),
        (True, ["States.DataLimitExceeded"], "States.DataLimitExceeded"),
        (False, ["States.ALL"], "States.Runtime"),
        (False, ["States.TaskFailed"], "States.Runtime"),
        # localstack/localstack#10489: machines on AWS name it to catch it.
        (True, ["States.Runtime"], "States.Runtime"),
        (True, ["States.TaskFailed"], "Custom"),
        (False, ["States.TaskFailed"], "States.Timeout"),
        (True, ["Other", "Custom"], "Custom"),
        (False, ["custom"], "Custom"),
    ],
)
def test_names_match(expected: bool, names: list[str], error: str) -> None:
    # aws-facts section 1.6.
    assert expected is matches(names, StateError(error))


def test_a_missed_heartbeat_matches_both_of_its_names() -> None:
    # aws-facts section 1.5: the documentation disagrees with itself.
    beat = StateError("States.Timeout", alias="States.HeartbeatTimeout")
    assert matches(["States.Timeout"], beat)
    assert matches(["States.HeartbeatTimeout"], beat)


def test_a_retried_task_is_scheduled_again_after_its_wait() -> None:
    task = {
        **PUT,
        "Retry": [{"ErrorEquals": [MISSING], "IntervalSeconds": 10, "BackoffRate": 3, "MaxAttempts": 2}],
    }
    ran = execute(machine(("T", task)), services=failing(2))
    assert ("SUCCEEDED", 40) == (ran.status, ran.seconds)
    one = ["TaskScheduled", "TaskStarted", "TaskFailed"]
    assert ["ExecutionStarted", "TaskStateEntered", *one, *one] == ran.types[:8]


def test_when_retries_run_out_the_catcher_gets_the_error() -> None:
    task = {
        **PUT,
        "Retry": [{"ErrorEquals": [MISSING], "MaxAttempts": 1}],
        "Catch": [{"ErrorEquals": ["States.TaskFailed"], "ResultPath": "$.error", "Next": "Caught"}],
        "End": True,
    }
    services = failing(9)
    ran = execute(machine(("T", task), ("Caught", passing())), {"a": 1}, services)
    assert (1, MISSING) == (ran.output["a"], ran.output["error"]["Error"])
    assert 2 == len(services.calls)
    assert ran.types[-4:] == ["TaskStateExited", "PassStateEntered", "PassStateExited", "ExecutionSucceeded"]


def test_a_catcher_replaces_the_input_by_default_and_ignores_output_path() -> None:
    # Recorded on AWS: test_raise_exception_catch_output_path.
    task = {
        **PUT,
        "OutputPath": None,
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}],
        "End": True,
    }
    ran = execute(machine(("T", task), ("Caught", passing())), {"a": 1}, failing(1))
    assert ["Error", "Cause"] == list(ran.output)


def test_attempts_of_none_never_retry() -> None:
    task = {**PUT, "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 0}]}
    services = failing(1)
    assert "FAILED" == execute(machine(("T", task)), services=services).status
    assert 1 == len(services.calls)


COUNT = "States.Format('{}', $$.State.RetryCount)"


def test_retries_count_from_nothing_at_each_visit_and_show_in_the_context() -> None:
    seen: list[Any] = []

    def answer(parameters: Any) -> Any:
        seen.append(int(parameters["Key"]["n"]["N"]))
        return failing_once(parameters) if len(seen) % 2 else {}

    failing_once = refuse("ResourceNotFoundException")
    task = {
        **PUT,
        "Parameters": {"TableName": "t", "Key": {"n": {"N.$": COUNT}}},
        "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1}],
    }
    ran = execute(machine(("A", task), ("B", task)), services=Services(dynamodb_getItem=answer))
    assert ("SUCCEEDED", [0, 1, 0, 1]) == (ran.status, seen)


def test_an_error_of_the_state_itself_is_caught_by_all_unless_it_is_of_the_runtime() -> None:
    catch = {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}], "End": True}
    broken = {**PUT, **catch, "Parameters": {"TableName.$": "States.ArrayGetItem($.list, 5)", "Key": {}}}
    ran = execute(machine(("T", broken), ("Caught", passing())), {"list": []}, failing(0))
    assert "States.IntrinsicFailure" == ran.output["Error"]
    missing = {**PUT, **catch, "Parameters": {"TableName.$": "$.nope", "Key": {}}}
    assert "States.Runtime" == execute(machine(("T", missing), ("Caught", passing())), {}, failing(0)).error


def test_an_error_of_the_runtime_is_caught_by_its_own_name() -> None:
    # localstack/localstack#10489.
    catch = {"Catch": [{"ErrorEquals": ["States.Runtime"], "Next": "Caught"}], "End": True}
    task = {**PUT, **catch, "Parameters": {"TableName.$": "$.nope", "Key": {}}}
    ran = execute(machine(("T", task), ("Caught", passing())), {}, failing(0))
    assert "States.Runtime" == ran.output["Error"]
    assert ran.output["Cause"].startswith("An error occurred while executing the state 'T' (entered at the ")


def test_an_error_and_its_cause_are_no_longer_than_the_api_can_tell() -> None:
    # botocore: SensitiveError, SensitiveCause.
    fail = {"Type": "Fail", "ErrorPath": "$.long", "CausePath": "$.long"}
    ran = execute(machine(("F", fail)), {"long": "é" * 40_000})
    assert (256, 32_768) == (len(ran.error or ""), len(ran.cause or ""))


def test_a_delay_beyond_any_number_is_a_long_one() -> None:
    retries = Retries([Retrier(errors=("E",), attempts=99, backoff=1e7)], Chance(1))
    delays = [retries.next_delay(StateError("E")) or 0 for _ in range(99)]
    assert delays[-1] > 365 * 24 * 3600
