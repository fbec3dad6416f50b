"""Retry and Catch."""

from __future__ import annotations

from trueup.local.stepfunctions.model import Catcher, Retrier
from trueup.local.stepfunctions.parsing.fields import SCHEMA, Fields

MAX_SECONDS = 99_999_999
_MAX_DELAY = 31_622_400
_ALL = "States.ALL"


def parse_retry(fields: Fields) -> tuple[Retrier, ...]:
    """The retriers of a state, in their order."""
    entries = _entries(fields, "Retry")
    return tuple(_retrier(entry, last=index == len(entries) - 1) for index, entry in enumerate(entries))


def parse_catch(fields: Fields) -> tuple[Catcher, ...]:
    """The catchers of a state, in their order."""
    entries = _entries(fields, "Catch")
    return tuple(_catcher(entry, last=index == len(entries) - 1) for index, entry in enumerate(entries))


def _entries(fields: Fields, field: str) -> list[Fields]:
    return [
        Fields(raw, f"{fields.location}/{field}[{index}]", fields.problems, f"{fields.owner}, {field}")
        for index, raw in enumerate(fields.list(field))
    ]


def _retrier(fields: Fields, *, last: bool) -> Retrier:
    errors = _errors(fields, last=last)
    interval = fields.integer("IntervalSeconds", 1, MAX_SECONDS)
    attempts = fields.integer("MaxAttempts", 0, MAX_SECONDS)
    backoff = fields.number("BackoffRate", 1, MAX_SECONDS)
    max_delay = fields.integer("MaxDelaySeconds", 1, _MAX_DELAY)
    jitter = fields.one_of("JitterStrategy", ("NONE", "FULL"), "NONE")
    fields.finish()
    return Retrier(
        errors=errors,
        interval=1 if interval is None else interval,
        attempts=3 if attempts is None else attempts,
        backoff=2.0 if backoff is None else backoff,
        max_delay=max_delay,
        jitter=jitter == "FULL",
    )


def _catcher(fields: Fields, *, last: bool) -> Catcher:
    catcher = Catcher(
        errors=_errors(fields, last=last),
        next=fields.text("Next", required=True) or "",
        result_path=fields.reference("ResultPath"),
        assign=fields.template("Assign"),
    )
    fields.finish()
    return catcher


def _errors(fields: Fields, *, last: bool) -> tuple[str, ...]:
    names = fields.list("ErrorEquals", required=True)
    if not all(isinstance(name, str) for name in names):
        fields.problem(SCHEMA, "Expected an array of strings", "ErrorEquals")
        return ()
    # [dg:concepts-error-handling]: States.ALL stands alone and in the last entry.
    if _ALL in names and (len(names) > 1 or not last):
        fields.problem(SCHEMA, f"{_ALL} has to stand alone, and in the last entry", "ErrorEquals")
    return tuple(names)
