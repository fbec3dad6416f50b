"""Asking twice: which requests with one id are the same."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from typing import Any

from trueup.errors import RequestError
from trueup.ledger import Ledger
from trueup.ledger.table import Table
from trueup.model.job import Limits
from trueup.model.ledger import Run
from trueup.model.request import Request
from trueup.testing.suites.support import TickingClock, a_run, refusal, unique


class AskingSuite:
    """Requests that bound their run."""

    def test_a_request_id_used_with_other_bounds_is_refused(self, table: Table) -> None:
        ledger = Ledger(table, TickingClock())
        request_id, target = unique("request"), unique("target")
        first = ledger.runs.create(self.bounded(request_id, target, canary=2, sample=3, max_concurrency=4))
        for change, said in (
            ({"canary": 5}, "canary (2, not 5)"),
            ({"canary": None}, "canary (2, not none)"),
            ({"sample": None}, "sample (3, not none)"),
            ({"max_concurrency": 9}, "maxConcurrency (4, not 9)"),
        ):
            asked: dict[str, Any] = {"canary": 2, "sample": 3, "max_concurrency": 4, **change}
            error = refusal(RequestError, ledger.runs.create, self.bounded(request_id, target, **asked))
            assert ("requestId", True) == (error.field, said in str(error))
        again = self.bounded(request_id, target, canary=2, sample=3, max_concurrency=4)
        assert first == ledger.runs.create(again)
        assert ["start"] == [entry.verb for entry in ledger.audit.of(first.run_id)]

    def test_the_same_words_are_the_same_request_whatever_the_job_file_says_by_now(
        self, table: Table
    ) -> None:
        ledger = Ledger(table, TickingClock())
        request_id, target = unique("request"), unique("target")
        first = ledger.runs.create(self.bounded(request_id, target, default=(2, 4)))
        assert first == ledger.runs.create(self.bounded(request_id, target, default=(3, 8)))
        said = self.bounded(request_id, target, canary=2, max_concurrency=4, default=(3, 8))
        assert first == ledger.runs.create(said)
        assert "canary" in str(
            refusal(RequestError, ledger.runs.create, self.bounded(request_id, target, canary=3))
        )

    def test_a_run_that_was_stored_without_its_request_is_no_conflict(self, table: Table) -> None:
        ledger = Ledger(table, TickingClock())
        request_id, target = unique("request"), unique("target")
        first = ledger.runs.create(a_run(request_id=request_id, target=target))
        assert first == ledger.runs.create(self.bounded(request_id, target, canary=2))

    def bounded(
        self, request_id: str, target: str, *, default: tuple[int, int] = (0, 1), **asked: Any
    ) -> Run:
        """A run as it is created for a request; `default` is what the job file says of canary and tasks."""
        request = Request(job="flights", request_id=request_id, requester="ann", **asked)
        return a_run(
            request_id=request_id,
            target=target,
            request=request,
            canary=default[0] if request.canary is None else request.canary,
            limits=Limits(max_concurrency=request.max_concurrency or default[1]),
        )
