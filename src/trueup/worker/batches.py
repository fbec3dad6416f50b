"""One batch through transform, combine and write, with every record accounted for.

An error names the record that it happened to: `transform`'s is at hand, `combine` is bisected without
writing, `write` is bisected over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CoroutineType, GeneratorType, NoneType
from typing import Any

from trueup.errors import JobError, Refused, StoreUnavailable
from trueup.jobs import Backfill, Context, Outcome, Range, RangeOutcome, Reject, Skip, overrides
from trueup.model.counters import COUNTERS, Counters
from trueup.worker.stopping import Stopped
from trueup.worker.telling import describe, storable, told

# These are not the fault of a record, so no bisection is made for them.
NOT_A_RECORDS_FAULT = (JobError, Stopped, Refused, StoreUnavailable)


class RecordFailed(JobError):
    """The author's code failed on a record (or, where no single one does it, on a range of them)."""

    def __init__(self, hook: str, record: object, cause: BaseException) -> None:
        super().__init__(f"{hook} failed with {type(cause).__name__}: {told(cause)}")
        self.hook = hook
        self.record = describe(record)


@dataclass(slots=True)
class Figures:
    """The counters of a batch, or their sum so far: plain, because the loop adds to them all the time."""

    read: int = 0
    used: int = 0
    skipped: int = 0
    rejected: int = 0
    produced: int = 0
    written: int = 0
    unchanged: int = 0
    refused: int = 0

    @classmethod
    def of(cls, counters: Counters) -> Figures:
        """The figures of a checkpoint."""
        return cls(*(getattr(counters, name) for name in COUNTERS))

    def add(self, more: Figures) -> None:
        """Add those of another batch."""
        for name in COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(more, name))

    def counters(self) -> Counters:
        """The figures as a checkpoint has them."""
        return Counters(**{name: getattr(self, name) for name in COUNTERS})


@dataclass(slots=True)
class Worked:
    """What became of a batch: the figures to add, the reasons, and the lines for the rejects object."""

    figures: Figures
    skipped: dict[str, int] = field(default_factory=dict)
    rejects: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WorkedBatch:
    """A batch that is worked already: a step of a comparison, and the cursor after it."""

    cursor: str
    worked: Worked


@dataclass(slots=True)
class _Transformed:
    rows: list[Any]
    used: int
    skipped: dict[str, int] = field(default_factory=dict)
    rejects: list[dict[str, Any]] = field(default_factory=list)


Attempt = Callable[[str, Callable[[], Any]], Any]


def work_records(job: Backfill, records: Sequence[Any], ctx: Context | None, attempt: Attempt) -> Worked:
    """Work a batch. `ctx` None is a rehearsal: nothing is written, so every produced row counts as unchanged.

    `attempt(what, call)` retries what may be retried. Raises RecordFailed, JobError, and what stops the task.
    """
    transformed = attempt("transform", lambda: transform(job, records))
    rows = attempt("combine", lambda: combine(job, records, transformed.rows))
    outcome = Outcome(unchanged=len(rows)) if ctx is None else _write(job, rows, ctx, attempt)
    figures = Figures(
        read=len(records),
        used=transformed.used,
        skipped=sum(transformed.skipped.values()),
        rejected=len(transformed.rejects),
        produced=len(rows),
        written=outcome.written,
        unchanged=outcome.unchanged,
        refused=len(outcome.refused),
    )
    refused = [{"refused": row, "reason": _stored(reason)} for row, reason in outcome.refused]
    return Worked(figures, transformed.skipped, transformed.rejects + refused)


def transform(job: Backfill, records: Sequence[Any]) -> _Transformed:
    """All records of a batch. Raises RecordFailed with the record that failed."""
    if not overrides(job, "transform"):
        return _Transformed(list(records), used=len(records))
    try:
        made = list(map(job.transform, records))
    except NOT_A_RECORDS_FAULT:
        raise
    except Exception:
        made = _one_by_one(job, records)
    if len(made) < len(records):
        # StopIteration (a `next` that found nothing) ends a `map` as if the records were through.
        made = _one_by_one(job, records)
    # Most batches hold plain rows alone; asking for the set of types is one pass at C's speed.
    if any(issubclass(kind, _SPECIAL) for kind in set(map(type, made))):
        return _sort_out(records, made)
    return _Transformed(made, used=len(records))


# A class among them: `return Skip` forgot the reason, and would be written as a row.
_NO_ROWS = (GeneratorType, CoroutineType, map, filter, type)
_NOT_IN_A_LIST = (Skip, Reject, NoneType, *_NO_ROWS)
_SPECIAL = (list, Skip, Reject, NoneType, *_NO_ROWS)


def _one_by_one(job: Backfill, records: Sequence[Any]) -> list[Any]:
    made = []
    for record in records:
        try:
            made.append(job.transform(record))
        except NOT_A_RECORDS_FAULT:
            raise
        except Exception as error:
            raise RecordFailed("transform", record, error) from error
    return made


def _sort_out(records: Sequence[Any], made: list[Any]) -> _Transformed:
    done = _Transformed([], used=0)
    for record, result in zip(records, made, strict=True):
        if isinstance(result, Skip | Reject) and not _is_reason(result.reason):
            what = f"the reason of its {type(result).__name__} is {result.reason!r}; give a text"
            raise RecordFailed("transform", record, TypeError(what))
        if isinstance(result, Skip):
            done.skipped[result.reason] = done.skipped.get(result.reason, 0) + 1
        elif isinstance(result, Reject):
            done.rejects.append({"rejected": record, "reason": storable(result.reason)})
        else:
            done.used += 1
            done.rows.extend(_rows_of(record, result))
    return done


def _rows_of(record: Any, result: Any) -> list[Any]:
    """What one record became, one row or a list. Raises RecordFailed where that is no row."""
    if result is None or isinstance(result, _NO_ROWS):
        what = f"it returned {_named(result)}; return a row, a list of rows, [], Skip(why) or Reject(why)"
        raise RecordFailed("transform", record, TypeError(what))
    rows = result if isinstance(result, list) else [result]
    wrong = next((row for row in rows if isinstance(row, _NOT_IN_A_LIST)), rows)
    if wrong is not rows:
        what = f"it returned a list with {_named(wrong)} in it; a list holds rows alone"
        raise RecordFailed("transform", record, TypeError(what))
    return rows


def _named(result: object) -> str:
    return f"the class {result.__name__}" if isinstance(result, type) else type(result).__name__


def _is_reason(reason: object) -> bool:
    return isinstance(reason, str) and reason != ""


def _stored(reason: Any) -> Any:
    """Why a row was refused, as the report can say it; `write` may give something else than a text."""
    return storable(reason) if isinstance(reason, str) else reason


def combine(job: Backfill, records: Sequence[Any], rows: list[Any]) -> Sequence[Any]:
    """The rows to write.

    Raises RecordFailed with the record, or the fewest records, that combine fails on.
    """
    if not rows or not overrides(job, "combine"):
        return rows
    try:
        return _combined(job, rows)
    except NOT_A_RECORDS_FAULT:
        raise
    except Exception as error:
        guilty, cause = _fewest_that_fail(job, records, error)
        raise RecordFailed("combine", guilty, cause) from error


def _combined(job: Backfill, rows: list[Any]) -> Sequence[Any]:
    made = job.combine(rows)
    if isinstance(made, list | tuple):
        return made
    raise JobError(f"combine returned {type(made).__name__}.", remedy="Return a list of rows.")


def _fewest_that_fail(job: Backfill, records: Sequence[Any], error: Exception) -> tuple[object, Exception]:
    while len(records) > 1:
        half = len(records) // 2
        for part in (records[:half], records[half:]):
            failed = _fails(job, part)
            if failed is not None:
                records, error = part, failed
                break
        else:
            return list(records), error
    return records[0] if records else None, error


def _fails(job: Backfill, records: Sequence[Any]) -> Exception | None:
    rows = transform(job, records).rows
    try:
        if rows:
            job.combine(rows)
    except Exception as error:
        return error
    return None


def _write(job: Backfill, rows: Sequence[Any], ctx: Context, attempt: Attempt) -> Outcome:
    if not rows:
        return Outcome()
    try:
        # A list of its own for each attempt: an author may take rows out of it, and the next attempt and the
        # count of them must not miss any.
        outcome: Outcome = attempt("write", lambda: _checked(job.write(list(rows), ctx), rows))
        return outcome
    except NOT_A_RECORDS_FAULT:
        raise
    except Exception as error:
        if len(rows) == 1:
            raise RecordFailed("write", rows[0], error) from error
    half = len(rows) // 2
    return _write(job, rows[:half], ctx, attempt).plus(_write(job, rows[half:], ctx, attempt))


def _checked(outcome: object, rows: Sequence[Any]) -> Outcome:
    if not isinstance(outcome, Outcome):
        raise WrongOutcome(f"write returned {type(outcome).__name__}, not an Outcome.")
    _must_be_counts([outcome.written, outcome.unchanged], _OUTCOME)
    if not all(_is_pair(one) for one in outcome.refused):
        raise WrongOutcome("write returned refused rows that are no pairs of row and reason.")
    known = outcome.written + outcome.unchanged + len(outcome.refused)
    if known != len(rows):
        raise WrongOutcome(
            f"write was given {len(rows)} rows and accounts for {known}: {outcome.written} written, "
            f"{outcome.unchanged} unchanged, {len(outcome.refused)} refused."
        )
    return outcome


def _is_pair(refused: object) -> bool:
    return isinstance(refused, tuple) and len(refused) == 2


def _must_be_counts(figures: Sequence[object], remedy: str) -> None:
    wrong = [figure for figure in figures if not isinstance(figure, int) or figure < 0]
    if wrong:
        raise WrongOutcome(f"write returned {wrong[0]!r} where a number of rows belongs.", remedy=remedy)


_OUTCOME = "Return Outcome(written=…, unchanged=…, refused=[(row, reason), …])."
_RANGE_OUTCOME = (
    "Return RangeOutcome(read=…, written=…, unchanged=…, refused=…, rejected=…, skipped={reason: …})."
)


class WrongOutcome(JobError):
    """The author's `write` does not say what became of every row."""

    def __init__(self, what: str, *, remedy: str = _OUTCOME) -> None:
        super().__init__(what, remedy=remedy)


def work_range(job: Backfill, part: Range, ctx: Context | None, attempt: Attempt) -> Worked:
    """Let the target work a range. In a rehearsal nothing is known of its records, and nothing is counted.

    A failing range is named, not bisected. Raises RecordFailed, and what stops the task.
    """
    if ctx is None:
        return Worked(Figures())
    try:
        outcome = attempt("write", lambda: _range_outcome(job.write(part, ctx)))
    except NOT_A_RECORDS_FAULT:
        raise
    except Exception as error:
        raise RecordFailed("write", part, error) from error
    return Worked(_range_figures(outcome), dict(outcome.skipped), _range_rejects(part, outcome))


def _range_outcome(outcome: object) -> RangeOutcome:
    if not isinstance(outcome, RangeOutcome):
        raise WrongOutcome(
            f"write of a Range returned {type(outcome).__name__}, not a RangeOutcome.", remedy=_RANGE_OUTCOME
        )
    given = [outcome.read, outcome.written, outcome.unchanged, outcome.refused, outcome.rejected]
    _must_be_counts([*given, *outcome.skipped.values()], _RANGE_OUTCOME)
    if not all(map(_is_reason, outcome.skipped)):
        raise WrongOutcome(
            "write of a Range skipped records for a reason that is no text.", remedy=_RANGE_OUTCOME
        )
    left_out = sum(outcome.skipped.values()) + outcome.rejected
    if left_out > outcome.read:
        raise WrongOutcome(
            f"write of a Range skipped and rejected {left_out} of {outcome.read} records.",
            remedy=_RANGE_OUTCOME,
        )
    return outcome


def _range_figures(outcome: RangeOutcome) -> Figures:
    skipped = sum(outcome.skipped.values())
    return Figures(
        read=outcome.read,
        used=outcome.read - skipped - outcome.rejected,
        skipped=skipped,
        rejected=outcome.rejected,
        produced=outcome.written + outcome.unchanged + outcome.refused,
        written=outcome.written,
        unchanged=outcome.unchanged,
        refused=outcome.refused,
    )


def _range_rejects(part: Range, outcome: RangeOutcome) -> list[dict[str, Any]]:
    if not outcome.rejected + outcome.refused:
        return []
    line = {"range": [part.low, part.high], "rejected": outcome.rejected, "refused": outcome.refused}
    return [{**line, "reason": "counted by the target"}]
