"""One batch: every record accounted for, every error with the record that it happened to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from trueup import Backfill, Outcome, Reject, Skip
from trueup.errors import JobError, Throttled
from trueup.model.states import PartitionStatus
from trueup.worker.batches import RecordFailed, WrongOutcome, work_records

from .worker_cases import Numbers, error, item, job_of, run_of

LENIENT = {"errors": {"rejects": 100}}


def attempt(what: str, call: Callable[[], Any]) -> Any:
    """No patience at all."""
    return call()


class Recorder(Backfill):
    """Writes nowhere, and remembers with how many rows `write` was called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def write(self, rows: Any, ctx: Any) -> Any:
        self.calls.append(len(rows))
        return Outcome(written=len(rows))


def recorder(**hooks: Any) -> Recorder:
    """A job with some hooks of its own."""
    made: Recorder = type("Job", (Recorder,), hooks)()
    return made


def work(job: Backfill, records: list[Any]) -> Any:
    """The batch, worked for real."""
    return work_records(job, records, object(), attempt)  # type: ignore[arg-type]


def figures(job: Backfill, records: list[Any]) -> tuple[int, ...]:
    """used, skipped, rejected, produced."""
    found = work(job, records).figures
    return (found.used, found.skipped, found.rejected, found.produced)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("row", (1, 0, 0, 1)),
        (["one", "two"], (1, 0, 0, 2)),
        ([], (1, 0, 0, 0)),
        (("a", "tuple is a row"), (1, 0, 0, 1)),
        (0, (1, 0, 0, 1)),
        (Skip("cancelled"), (0, 1, 0, 0)),
        (Reject("no date"), (0, 0, 1, 0)),
    ],
)
def test_what_transform_may_return(result: Any, expected: tuple[int, ...]) -> None:
    assert expected == figures(recorder(transform=lambda self, record: result), ["record"])


class MySkip(Skip):
    """Authors may subclass it."""


class MyList(list[Any]):
    """And lists."""


@pytest.mark.parametrize(("result", "expected"), [(MySkip("x"), (0, 1, 0, 0)), (MyList("ab"), (1, 0, 0, 2))])
def test_subclasses_count_as_what_they_are(result: Any, expected: tuple[int, ...]) -> None:
    assert expected == figures(recorder(transform=lambda self, record: result), ["record"])


def test_without_transform_the_record_itself_is_the_row() -> None:
    assert (3, 0, 0, 3) == figures(recorder(), [["a", "list"], {"a": "dict"}, "text"])


def test_skips_are_counted_by_reason() -> None:
    job = recorder(transform=lambda self, n: Skip("odd" if n % 2 else "even"))
    assert {"odd": 2, "even": 1} == work(job, [1, 2, 3]).skipped


@pytest.mark.parametrize(
    "result", [None, (n for n in "generator"), map(str, "map"), filter(None, "filter"), Skip, Reject]
)
def test_what_transform_may_not_return_names_the_record(result: Any) -> None:
    job = recorder(transform=lambda self, n: result if n == 2 else n)
    with pytest.raises(
        RecordFailed, match=r"it returned .*; return a row, a list of rows, \[\], Skip\(why\) or Rej"
    ) as failed:
        work(job, [1, 2, 3])
    assert "2" == failed.value.record


@pytest.mark.parametrize(
    ("wrong", "named"), [(None, "NoneType"), (Skip("no date"), "Skip"), (Reject, "the class Reject")]
)
def test_a_list_from_transform_holds_rows_alone(wrong: Any, named: str) -> None:
    job = recorder(transform=lambda self, n: [n, wrong] if n == 2 else [n, n])
    with pytest.raises(
        RecordFailed, match=f"it returned a list with {named} in it; a list holds rows"
    ) as failed:
        work(job, [1, 2, 3])
    assert "2" == failed.value.record


async def not_awaited(self: Any, n: int) -> int:
    return n


@pytest.mark.filterwarnings("ignore:coroutine")
def test_transform_may_not_be_a_coroutine() -> None:
    with pytest.raises(RecordFailed, match="it returned coroutine; return a row"):
        work(recorder(transform=not_awaited), [1])


@pytest.mark.parametrize("kind", [Skip, Reject])
@pytest.mark.parametrize("reason", [None, 404, ""])
def test_a_reason_is_a_text(kind: Any, reason: Any) -> None:
    job = recorder(transform=lambda self, n: kind(reason) if n == 2 else n)
    wanted = f"the reason of its {kind.__name__} is {reason!r}; give a text"
    with pytest.raises(RecordFailed, match=wanted) as failed:
        work(job, [1, 2, 3])
    assert "2" == failed.value.record


def test_an_exception_in_transform_names_the_record_and_keeps_the_cause() -> None:
    job = recorder(transform=lambda self, n: 1 / n)
    with pytest.raises(
        RecordFailed, match="transform failed with ZeroDivisionError: division by zero"
    ) as failed:
        work(job, [2, 0, 1])
    assert ("0", ZeroDivisionError) == (failed.value.record, type(failed.value.__cause__))


def test_a_next_that_found_nothing_is_an_error_like_any_other() -> None:
    known = ["zero", "one"]

    def transform(self: Any, n: int) -> str:
        return next(name for name in known if n < len(known))

    run = run_of(job_of(transform=transform))
    run.run()
    assert (PartitionStatus.FAILED, 0) == (item(run).status, run.records.used)
    assert "StopIteration | transform failed with StopIteration: | 2" == error(run)


def test_a_long_record_is_cut_in_the_error() -> None:
    job = recorder(transform=lambda self, text: 1 / 0)
    with pytest.raises(RecordFailed) as failed:
        work(job, ["x" * 5000])
    assert 1000 == len(failed.value.record)


def test_transform_may_ask_to_be_tried_again() -> None:
    failures = [Throttled()]

    def transform(self: Any, n: int) -> int:
        if failures:
            raise failures.pop()
        return n

    run = run_of(job_of(transform=transform))
    run.run()
    assert (1, 12) == (run.accepted, run.records.used)


def sums_without_seven(self: Any, rows: list[int]) -> list[int]:
    if 7 in rows:
        raise ValueError("seven")
    return [sum(rows)]


def test_combine_makes_few_rows_of_many() -> None:
    assert (3, 0, 0, 1) == figures(recorder(combine=sums_without_seven), [1, 2, 3])


def test_combine_is_bisected_to_the_record_without_writing() -> None:
    job = recorder(combine=sums_without_seven)
    with pytest.raises(RecordFailed, match="combine failed with ValueError: seven") as failed:
        work(job, list(range(20)))
    assert ("7", []) == (failed.value.record, job.calls)


def test_where_only_records_together_fail_combine_the_fewest_are_named() -> None:
    def combine(self: Any, rows: list[int]) -> list[int]:
        if {7, 8} <= set(rows):
            raise ValueError("seven with eight")
        return rows

    with pytest.raises(RecordFailed) as failed:
        work(recorder(combine=combine), list(range(16)))
    # Halving goes 0-15, 0-7 | 8-15: neither half has both.
    assert repr(list(range(16))) == failed.value.record


def test_records_that_make_no_row_are_not_blamed_for_combine() -> None:
    def combine(self: Any, rows: list[int]) -> list[int]:
        if max(rows) == 3:
            raise ValueError("three")
        return rows

    job = recorder(combine=combine, transform=lambda self, n: Skip("low") if n < 2 else n)
    with pytest.raises(RecordFailed) as failed:
        work(job, [0, 1, 2, 3])
    assert "3" == failed.value.record


def test_combine_is_not_called_for_a_batch_without_rows() -> None:
    job = recorder(combine=lambda self, rows: [max(rows)], transform=lambda self, n: Skip("all"))
    assert (0, 2, 0, 0) == figures(job, [1, 2])


def test_combine_must_return_rows() -> None:
    with pytest.raises(JobError, match=r"combine returned set. Return a list of rows."):
        work(recorder(combine=lambda self, rows: set(rows)), [1])


def refusing_seven(self: Recorder, rows: list[int], ctx: Any) -> Outcome:
    self.calls.append(len(rows))
    if 7 in rows:
        raise ValueError("seven")
    return Outcome(written=len(rows))


def test_write_is_bisected_to_the_row() -> None:
    job = recorder(write=refusing_seven)
    with pytest.raises(RecordFailed, match="write failed with ValueError: seven") as failed:
        work(job, list(range(16)))
    assert ("7", [16, 8, 4, 4, 2, 2, 1, 1]) == (failed.value.record, job.calls)


def test_where_all_parts_pass_their_summed_outcome_counts() -> None:
    def write(self: Recorder, rows: list[int], ctx: Any) -> Outcome:
        if len(rows) > 4:
            raise ValueError("too many at once")
        return Outcome(written=len(rows) - 1, refused=[(rows[-1], "last one")])

    worked = work(recorder(write=write), list(range(10)))
    assert (10, 6, 4) == (worked.figures.produced, worked.figures.written, worked.figures.refused)
    assert [1, 4, 6, 9] == [line["refused"] for line in worked.rejects]


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (None, "write returned NoneType, not an Outcome."),
        (Outcome(written=1), "write was given 2 rows and accounts for 1: 1 written, 0 unchanged, 0 refused."),
        (Outcome(written=3), "write was given 2 rows and accounts for 3: 3 written, 0 unchanged, 0 refused."),
        (Outcome(written=3, unchanged=-1), "write returned -1 where a number of rows belongs."),
        (Outcome(written=None), "write returned None where a number of rows belongs."),  # type: ignore[arg-type]
        (Outcome(written=1, refused=["x"]), "refused rows that are no pairs of row and reason."),  # type: ignore[list-item]
    ],
)
def test_a_wrong_outcome_is_named_and_not_bisected(outcome: Any, message: str) -> None:
    calls: list[int] = []

    def write(self: Any, rows: Any, ctx: Any) -> Any:
        calls.append(len(rows))
        return outcome

    with pytest.raises(WrongOutcome) as failed:
        work(recorder(write=write), [1, 2])
    assert message in str(failed.value)
    assert [2] == calls


def test_a_write_that_takes_rows_out_of_its_list_accounts_for_them_all_the_same() -> None:
    def write(self: Any, rows: list[int], ctx: Any) -> Outcome:
        rows.remove(1)
        return Outcome(written=len(rows))

    with pytest.raises(WrongOutcome, match="write was given 2 rows and accounts for 1"):
        work(recorder(write=write), [1, 2])


def test_a_write_that_empties_its_list_gets_all_rows_again_after_throttling() -> None:
    written: set[int] = set()
    throttled = [Throttled()]

    def write(self: Any, rows: list[int], ctx: Any) -> Outcome:
        given = len(rows)
        while rows:
            if len(rows) == 1 and throttled:
                raise throttled.pop()
            written.add(rows.pop())
        return Outcome(written=given)

    run = run_of(job_of(write=write))
    run.run()
    assert (1, 12, set(range(12))) == (run.accepted, run.records.written, written)


def test_write_is_not_called_without_rows() -> None:
    job = recorder(transform=lambda self, n: [])
    assert ((2, 0, 0, 0), []) == (figures(job, [1, 2]), job.calls)


def test_a_rehearsal_calls_no_write_and_counts_every_row_as_unchanged() -> None:
    job = recorder(transform=lambda self, n: [n, n])
    figures = work_records(job, [1, 2], None, attempt).figures
    assert (4, 0, 4, []) == (figures.produced, figures.written, figures.unchanged, job.calls)


def test_a_failed_partition_names_hook_cause_record_and_place() -> None:
    run = run_of(job_of(transform=lambda self, n: 1 / (n - 7)))
    run.run()
    assert "ZeroDivisionError | transform failed with ZeroDivisionError: division by zero | 7" == error(run)
    found = item(run).error
    assert found is not None
    assert "v1:6" == found.batch_after


def test_refused_rows_count_against_errors() -> None:
    def write(self: Numbers, rows: list[int], ctx: Any) -> Outcome:
        return Outcome(written=len(rows) - 1, refused=[(rows[0], "constraint")])

    run = run_of(job_of(write=write), sections={"errors": {"rejects": 1}})
    run.run()
    assert PartitionStatus.REJECTED == item(run).status
    assert "TooManyRejects | 0 records rejected and 2 rows refused by the sink; the job allows 1." in error(
        run
    )


def test_at_the_limit_of_rejects_a_partition_is_accepted() -> None:
    run = run_of(
        job_of(transform=lambda self, n: Reject("bad") if n < 2 else n), sections={"errors": {"rejects": 2}}
    )
    run.run()
    assert (1, 2) == (run.accepted, run.records.rejected)


def test_above_the_limit_of_rejects_nothing_more_is_read() -> None:
    job = job_of(transform=lambda self, n: Reject("bad") if n < 2 else n)
    run = run_of(job)
    run.run()
    assert (PartitionStatus.REJECTED, 3) == (item(run).status, item(run).counters.read)


@pytest.mark.parametrize("point", ["written", "advanced", "reported"])
def test_killed_above_the_limit_the_next_task_reports_and_works_nothing_more(point: str) -> None:
    run = run_of(job_of(transform=lambda self, n: Reject("bad") if n < 2 else n))
    while (step := run.step()) is not None and step.name != point:
        pass
    run.kill()
    run.run()
    assert (PartitionStatus.REJECTED, 3) == (item(run).status, item(run).counters.read)


class Mute(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def failing(error: BaseException) -> Callable[..., Any]:
    """A hook that raises."""

    def hook(*_: Any) -> Any:
        raise error

    return hook


@pytest.mark.parametrize("hook", ["read", "count", "transform", "combine", "write", "finish"])
def test_an_error_that_cannot_say_what_it_is_fails_the_partition(hook: str) -> None:
    run = run_of(job_of(**{hook: failing(Mute())}), keys="ab")
    run.run()
    assert ([PartitionStatus.FAILED] * 2, 1) == ([item(run, key).status for key in "ab"], len(run.tasks))
    assert "its text cannot be had (RuntimeError)" in error(run)


def test_an_error_with_half_a_surrogate_pair_can_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest's own workers cannot hand on a captured log with such a text.
    monkeypatch.setattr(logging.getLogger("trueup.worker"), "disabled", True)
    run = run_of(job_of(transform=failing(ValueError("caf\udce9"))))
    run.run()
    assert r"ValueError | transform failed with ValueError: caf\udce9 | 0" == error(run)


def test_a_reason_with_half_a_surrogate_pair_can_be_stored() -> None:
    run = run_of(job_of(transform=lambda self, n: Skip("caf\udce9")))
    run.run()
    assert {r"caf\udce9": 12} == item(run).skipped
