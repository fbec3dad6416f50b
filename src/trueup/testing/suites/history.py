"""Which reconciliation came last."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from trueup.ledger import Ledger
from trueup.ledger.table import Table
from trueup.testing.suites.support import unique

NOON = datetime(2026, 7, 6, 12, tzinfo=UTC)


class HistorySuite:
    """The newest run, and the newest that compared everything."""

    def test_nothing_is_known_of_a_job_that_never_ran(self, table: Table) -> None:
        assert [] == Ledger(table).history.of(unique("job"), "scope")

    def test_the_newest_whole_run_is_remembered_beside_a_newer_one_that_left_something_out(
        self, table: Table
    ) -> None:
        history, job = Ledger(table).history, unique("job")
        for hour, name, whole in ((1, "a", True), (2, "b", False), (3, "c", False)):
            history.note(job, "scope", name, NOON + timedelta(hours=hour), whole=whole)
        assert ["c", "a"] == history.of(job, "scope")
        history.note(job, "scope", "d", NOON + timedelta(hours=4), whole=True)
        assert ["d"] == history.of(job, "scope")
        assert [] == history.of(job, "other scope")

    def test_an_earlier_run_that_ends_later_takes_no_place(self, table: Table) -> None:
        history, job = Ledger(table).history, unique("job")
        history.note(job, "scope", "newer", NOON + timedelta(milliseconds=1), whole=True)
        history.note(job, "scope", "older", NOON, whole=True)
        assert ["newer"] == history.of(job, "scope")
