"""Which reconciliation came last, and what was signed as known."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from trueup.errors import NotAnApprover, NotOnTrail, OwnRequest
from trueup.ledger import Ledger, keys
from trueup.ledger.table import Table, Write
from trueup.model.known import Known
from trueup.model.ledger import Run
from trueup.testing.suites.gates import BOB
from trueup.testing.suites.support import Scene, refusal, unique

NOON = datetime(2026, 7, 6, 12, tzinfo=UTC)


def a_word(run: Run, **changes: Any) -> Known:
    """Somebody's word about a run's report; the job is called like the run's target, which is its own."""
    known = Known(
        known_id="0123456789ab",
        job=run.target,
        scope="scope",
        run_id=run.run_id,
        report_sha256="1" * 64,
        key=f"runs/{run.run_id}/known/0123456789ab.json",
        sha256="2" * 64,
        number=3,
        who=BOB,
        at=run.created_at,
        until=run.created_at + timedelta(days=30),
        why="the other system rounds",
    )
    return known.model_copy(update=changes)


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


class KnownSuite:
    """Words about known differences: on the trail, valid until their time is over, never changed."""

    def test_a_word_is_valid_until_its_time_is_over_and_in_its_scope_alone(self, table: Table) -> None:
        scene = Scene(table)
        known = a_word(scene.run)
        assert known == scene.ledger.known.sign(scene.run, known, ("user/bob",))
        of = scene.ledger.known.of
        assert [known] == list(of(known.job, known.at, "scope")) == list(of(known.job, known.at))
        assert [known] == list(of(known.job, known.until - timedelta(seconds=1), "scope"))
        assert [] == list(of(known.job, known.until, "scope"))
        assert [] == list(of(known.job, known.at, "other scope"))
        scene.ledger.known.check(known)
        entry = list(scene.ledger.audit.of(scene.run_id))[-1]
        assert ("sign-known", BOB, known.why) == (entry.verb, entry.who, entry.why)

    def test_the_requester_and_whoever_has_no_role_sign_nothing(self, table: Table) -> None:
        scene = Scene(table)
        own = a_word(scene.run, who=scene.run.requester)
        refusal(OwnRequest, lambda: scene.ledger.known.sign(scene.run, own, ()))
        other = a_word(scene.run)
        refusal(NotAnApprover, lambda: scene.ledger.known.sign(scene.run, other, ("user/carl",)))
        assert [] == list(scene.ledger.known.of(own.job, own.at))

    def test_a_word_that_was_written_or_changed_behind_the_trail_is_found(self, table: Table) -> None:
        scene = Scene(table)
        known = a_word(scene.run)
        refusal(NotOnTrail, lambda: scene.ledger.known.check(known))
        scene.ledger.known.sign(scene.run, known, ())
        for changes in ({"who": "carl"}, {"until": known.until + timedelta(days=1)}, {"sha256": "3" * 64}):
            changed = known.model_copy(update=changes)
            table.write(Write(keys.known(known.job, known.known_id), item=changed.document()))
            (found,) = scene.ledger.known.of(known.job, known.at)
            refusal(NotOnTrail, lambda found=found: scene.ledger.known.check(found))
