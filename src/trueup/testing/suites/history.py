"""Which reconciliation came last, and what was signed as known."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from trueup.errors import AlreadyDecided, NotAnApprover, NotFound, NotOnTrail, OwnRequest
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

    def test_a_word_that_was_withdrawn_counts_no_more(self, table: Table) -> None:
        scene = Scene(table)
        known = scene.ledger.known.sign(scene.run, a_word(scene.run), ())
        of = scene.ledger.known
        refusal(NotAnApprover, of.withdraw, known, who="eve", why="no", roles=("user/bob",))
        assert [known] == list(of.of(known.job, known.at))
        back = of.withdraw(known, who=scene.run.requester, why="it is through", roles=())
        assert back.withdrawn is not None
        assert (scene.run.requester, "it is through") == (back.withdrawn.who, back.withdrawn.why)
        assert [] == list(of.of(known.job, known.at))
        assert back == of.get(known.job, known.run_id, known.known_id)
        assert back == of.withdraw(known, who=BOB, why="again", roles=("user/bob",))
        assert known.hash() == back.hash()
        entry = list(scene.ledger.audit.of(scene.run_id))[-1]
        told = ("withdraw-known", scene.run.requester, "it is through")
        assert told == (entry.verb, entry.who, entry.why)
        assert known.hash() == entry.before["sha256"]

    def test_a_word_that_was_withdrawn_is_not_signed_again_as_it_was(self, table: Table) -> None:
        scene = Scene(table)
        known = scene.ledger.known.sign(scene.run, a_word(scene.run), ())
        scene.ledger.known.withdraw(known, who=BOB, why="it is through", roles=())
        error = refusal(AlreadyDecided, scene.ledger.known.sign, scene.run, known, ())
        assert "it is through" in str(error)
        other = a_word(scene.run, known_id="ba9876543210", why="it came back")
        assert other == scene.ledger.known.sign(scene.run, other, ())

    def test_a_withdrawal_that_was_taken_out_of_the_ledger_is_found(self, table: Table) -> None:
        scene = Scene(table)
        known = scene.ledger.known.sign(scene.run, a_word(scene.run), ())
        scene.ledger.known.withdraw(known, who=BOB, why="it is through", roles=())
        table.write(Write(keys.known(known.job, known.known_id), removes=("withdrawn",)))
        (found,) = scene.ledger.known.of(known.job, known.at)
        error = refusal(NotOnTrail, scene.ledger.known.check, found)
        assert "the word was not withdrawn" == error.clause

    def test_a_word_of_another_run_or_of_nobody_is_not_found(self, table: Table) -> None:
        scene = Scene(table)
        known = scene.ledger.known.sign(scene.run, a_word(scene.run), ())
        refusal(NotFound, scene.ledger.known.get, known.job, "another-run", known.known_id)
        refusal(NotFound, scene.ledger.known.get, known.job, known.run_id, "none")

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
