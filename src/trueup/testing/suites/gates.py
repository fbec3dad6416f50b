"""Gates: an approval names a hash, comes from another person, in time, serves once, and is on the trail."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from trueup.errors import (
    AlreadyDecided,
    ApprovalExpired,
    NotAnApprover,
    NotApproved,
    NotFound,
    NotOnTrail,
    OtherRun,
    OtherSubject,
    OwnRequest,
    RunClosed,
    Stale,
)
from trueup.ledger import keys
from trueup.ledger.table import Table, Write
from trueup.model.gate import Asked, Gate, Subject, SubjectKind
from trueup.model.ledger import Run
from trueup.model.states import GATE_ARROWS, GateStatus, RunStatus
from trueup.testing.suites.support import Scene, in_threads, refusal, unique

G, R = GateStatus, RunStatus
ROLES = ("ReleaseManager", "user/bob")
BOB = "arn:aws:iam::123456789012:user/bob"
CAT = "arn:aws:sts::123456789012:assumed-role/ReleaseManager/cat"
EVE = "arn:aws:iam::123456789012:user/eve"


def asked(sha256: str | None = None, **changes: Any) -> Asked:
    """A gate before `apply`, about something that nobody else asks about."""
    sha256 = sha256 or unique("").replace("-", "").ljust(64, "0")
    subject = Subject(kind=SubjectKind.PLAN, key="plan.json", sha256=sha256)
    return Asked(**{"name": "apply", "subject": subject, "roles": ROLES, "hours": 1.0, **changes})


class GateScene(Scene):
    """A scene whose run waits at a gate."""

    def __init__(self, table: Table, **changes: Any) -> None:
        super().__init__(table)
        self.gates = self.ledger.gates
        self.asked = asked(**changes)
        self.sha256 = self.asked.subject.sha256
        self.gates.open(self.run, self.asked)
        self.run = self.ledger.runs.get(self.run_id)

    def say(self, to: GateStatus = G.APPROVED, who: str = BOB, **changes: Any) -> Gate:
        """A word of Bob's, as it should be but for the changes."""
        told: dict[str, Any] = {"sha256": self.sha256, "comment": "looked at it", **changes}
        return self.gates.decide(told.pop("run_id", self.run_id), "apply", to, who=who, **told)

    def spend(self, run: Run | None = None, **changes: Any) -> Gate:
        """The run goes on, as it should but for the changes."""
        told: dict[str, Any] = {"sha256": self.sha256, "roles": ROLES, **changes}
        run = run or self.ledger.runs.get(self.run_id)
        return self.gates.spend(run, "apply", told["sha256"], told["roles"])

    def gate(self) -> Gate:
        """The gate as it stands."""
        return self.gates.get(self.run_id, "apply")

    def waits(self) -> bool:
        """Whether it is on the list of those that wait."""
        return (self.run_id, "apply") in {(gate.run_id, gate.name) for gate in self.gates.waiting()}

    def later(self) -> None:
        """The gate's time passes."""
        self.clock.skip(timedelta(hours=1))

    def write(self, **sets: Any) -> None:
        """Somebody writes to the gate past the ledger."""
        self.table.write(Write(keys.gate(self.run_id, "apply"), sets=sets))

    def verbs_of_gates(self) -> list[tuple[str, str, str]]:
        """What the trail says of gates: who, what, why."""
        entries = self.ledger.audit.of(self.run_id)
        return [(one.who, one.verb, one.why) for one in entries if one.subject == "gate apply"]


class GateSuite:
    """A gate from being asked for to being passed; each refusal has its own error."""

    def test_a_gate_waits_and_its_run_says_so(self, table: Table) -> None:
        scene = GateScene(table)
        gate = scene.gate()
        assert (G.OPEN, scene.sha256, ROLES, "ann") == (gate.status, gate.sha256, gate.roles, gate.requester)
        assert timedelta(hours=1) == gate.expires_at - gate.opened_at
        assert "apply" == scene.run.waits_at
        assert scene.waits()
        assert [("trueup:gate", "ask", "")] == scene.verbs_of_gates()

    def test_asked_again_about_the_same_nothing_changes(self, table: Table) -> None:
        scene = GateScene(table)
        assert scene.gate() == scene.gates.open(scene.run, scene.asked)
        assert [("trueup:gate", "ask", "")] == scene.verbs_of_gates()

    def test_the_time_at_a_gate_is_not_time_that_the_run_was_open(self, table: Table) -> None:
        scene = GateScene(table)
        before = scene.run.open_for(scene.clock.now())
        scene.clock.skip(timedelta(minutes=50))
        assert before == scene.ledger.runs.get(scene.run_id).open_for(scene.clock.now())
        scene.say()
        scene.spend()
        assert before + 1 > scene.ledger.runs.get(scene.run_id).open_for(scene.clock.now())

    def test_an_approval_is_on_the_trail_and_opens_the_gate(self, table: Table) -> None:
        scene = GateScene(table)
        approved = scene.say()
        assert (G.APPROVED, BOB, "looked at it") == (approved.status, approved.decided_by, approved.comment)
        assert approved == scene.gate()
        assert not scene.waits()
        spent = scene.spend()
        assert (G.SPENT, 1) == (spent.status, spent.spent_by)
        run = scene.ledger.runs.get(scene.run_id)
        assert (None, {"apply": scene.sha256}) == (run.waits_at, run.passed)
        scene.gates.check_passed(run, "apply", scene.sha256)
        assert [
            ("trueup:gate", "ask", ""),
            (BOB, "approve", "looked at it"),
            ("trueup:gate", "spend", ""),
        ] == scene.verbs_of_gates()

    def test_later_generations_go_on_under_an_approval_that_was_spent(self, table: Table) -> None:
        scene = GateScene(table)
        scene.say()
        spent = scene.spend()
        scene.later()
        later = scene.ledger.runs.get(scene.run_id).model_copy(update={"generation": 2})
        assert spent == scene.spend(later)

    def test_a_rejection_ends_the_question(self, table: Table) -> None:
        scene = GateScene(table)
        assert G.REJECTED is scene.say(G.REJECTED, CAT).status
        assert not scene.waits()
        refusal(NotApproved, scene.spend)
        refusal(AlreadyDecided, scene.say)

    def test_the_requester_may_take_it_back_and_not_approve_it(self, table: Table) -> None:
        scene = GateScene(table)
        error = refusal(OwnRequest, scene.say, who="ann")
        assert "approver and requester are two people" == error.clause
        assert G.REJECTED is scene.say(G.REJECTED, "ann").status

    def test_without_one_of_the_roles_nobodys_word_counts(self, table: Table) -> None:
        scene = GateScene(table)
        for to in (G.APPROVED, G.REJECTED):
            error = refusal(NotAnApprover, scene.say, to, EVE)
            assert "the decider has a role that the job lists" == error.clause
            assert "Ask one of ReleaseManager, user/bob." == error.remedy
        assert scene.gate().is_waiting

    def test_a_job_that_lists_no_roles_takes_anybodys_word_but_the_requesters(self, table: Table) -> None:
        scene = GateScene(table, roles=())
        refusal(OwnRequest, scene.say, who="ann")
        assert EVE == scene.say(who=EVE).decided_by

    def test_another_hash_is_refused(self, table: Table) -> None:
        scene = GateScene(table)
        error = refusal(OtherSubject, scene.say, sha256="f" * 64)
        assert ("this hash is what is asked about", "f" * 64) == (error.clause, error.wanted)
        assert scene.sha256[:12] in str(error)
        scene.say()
        refusal(OtherSubject, scene.spend, sha256="f" * 64)

    def test_the_hash_of_another_runs_plan_is_refused_by_that_runs_name(self, table: Table) -> None:
        scene, other = GateScene(table), GateScene(table)
        error = refusal(OtherRun, scene.say, sha256=other.sha256)
        assert other.run_id in str(error)
        assert (True, True) == (scene.waits(), other.waits())

    def test_an_approval_that_was_copied_from_another_run_opens_nothing(self, table: Table) -> None:
        scene, other = GateScene(table), GateScene(table)
        other.say()
        item = table.get(keys.gate(other.run_id, "apply"))
        table.write(Write(keys.gate(scene.run_id, "apply"), item={**(item or {}), "sha256": scene.sha256}))
        self._put_on_trail(scene, other)
        error = refusal(OtherRun, scene.spend)
        assert ("the gate is this run's", other.run_id) == (error.clause, (error.found or {})["runId"])

    @staticmethod
    def _put_on_trail(scene: GateScene, other: GateScene) -> None:
        after = {"status": "APPROVED", "sha256": scene.sha256}
        entry = scene.ledger.audit.entry(
            other.run_id, who=BOB, verb="approve", subject="gate apply", after=after
        )
        scene.table.transact([entry])

    def test_late_is_refused_to_the_second(self, table: Table) -> None:
        scene = GateScene(table)
        scene.clock.skip(scene.gate().expires_at - scene.clock.now() - timedelta(seconds=0.5))
        scene.say()
        scene = GateScene(table)
        scene.clock.skip(scene.gate().expires_at - scene.clock.now())
        assert "the gate's time is not over" == refusal(ApprovalExpired, scene.say).clause
        assert scene.waits()

    def test_an_approval_that_is_not_used_in_time_opens_nothing(self, table: Table) -> None:
        scene = GateScene(table)
        scene.say()
        scene.later()
        refusal(ApprovalExpired, scene.spend)
        assert G.APPROVED is scene.gate().status

    def test_twice_is_refused_unless_the_same_person_says_the_same(self, table: Table) -> None:
        scene = GateScene(table)
        approved = scene.say()
        assert approved == scene.say()
        error = refusal(AlreadyDecided, scene.say, who=CAT)
        assert "nobody decided yet" == error.clause
        assert BOB in str(error)
        refusal(AlreadyDecided, scene.say, G.REJECTED)
        spent = scene.spend()
        assert spent == scene.say()
        refusal(AlreadyDecided, scene.say, who=CAT)
        assert 3 == len(scene.verbs_of_gates())

    def test_of_eight_people_at_once_one_decides(self, table: Table) -> None:
        scene = GateScene(table, roles=())
        words = (G.APPROVED, G.REJECTED)
        answers = in_threads(8, lambda i: scene.say(words[i % 2], f"arn:aws:iam::1:user/p{i}"))
        assert (1, 7) == tuple(
            sum(isinstance(one, kind) for one in answers) for kind in (Gate, AlreadyDecided)
        )
        assert 2 == len(scene.verbs_of_gates())

    def test_nothing_opens_without_a_word(self, table: Table) -> None:
        scene = GateScene(table)
        assert "it is approved, and not used yet" == refusal(NotApproved, scene.spend).clause
        refusal(NotApproved, scene.gates.check_passed, scene.run, "apply", scene.sha256)
        scene.say()
        refusal(NotApproved, scene.gates.check_passed, scene.run, "apply", scene.sha256)

    def test_a_gate_that_was_never_asked_for_is_an_error_that_names_it(self, table: Table) -> None:
        scene = GateScene(table)
        assert "no gate repair" in str(refusal(NotFound, scene.gates.get, scene.run_id, "repair"))
        refusal(NotFound, scene.say, run_id="no-such-run")

    def test_an_approval_that_is_not_on_the_trail_opens_nothing(self, table: Table) -> None:
        scene = GateScene(table)
        scene.write(status="APPROVED", decidedBy=BOB, decidedAt="2026-01-01T00:00:01Z")
        error = refusal(NotOnTrail, scene.spend)
        assert "the audit trail tells of the approval" == error.clause

    def test_the_jobs_own_roles_count_and_not_those_written_at_the_gate(self, table: Table) -> None:
        scene = GateScene(table, roles=(), sha256=None)
        scene.say(who=EVE)
        refusal(NotAnApprover, scene.spend)

    def test_the_runs_own_requester_counts_and_not_the_one_written_at_the_gate(self, table: Table) -> None:
        scene = GateScene(table, roles=())
        scene.write(requester="somebody else")
        scene.say(who="ann")
        refusal(OwnRequest, scene.spend, roles=())

    def test_a_gate_that_says_spent_and_a_run_that_did_not_pass_it_open_nothing(self, table: Table) -> None:
        scene = GateScene(table)
        scene.say()
        scene.write(status="SPENT", spentBy=1)
        refusal(AlreadyDecided, scene.spend)
        refusal(NotApproved, scene.gates.check_passed, scene.run, "apply", scene.sha256)

    def test_a_run_that_is_closed_or_of_another_generation_passes_no_gate(self, table: Table) -> None:
        scene = GateScene(table)
        scene.say()
        later = scene.run.model_copy(update={"generation": 2})
        assert "the run is of this generation" == refusal(RunClosed, scene.spend, later).clause
        scene.ledger.runs.stop(scene.run_id, R.PAUSED, who="ann", why="lunch")
        assert "the run is open" == refusal(RunClosed, scene.spend).clause
        assert G.APPROVED is scene.gate().status

    def test_a_paused_runs_gate_can_be_decided_and_an_ended_ones_cannot(self, table: Table) -> None:
        scene = GateScene(table)
        scene.ledger.runs.stop(scene.run_id, R.PAUSED, who="ann", why="lunch")
        scene.ledger.runs.finish(scene.run_id, R.PAUSED, who="settler")
        assert G.APPROVED is scene.say().status
        scene = GateScene(table)
        scene.succeed()
        assert "the run has not ended" == refusal(RunClosed, scene.say).clause

    def test_no_gate_is_asked_for_by_a_run_that_is_closed(self, table: Table) -> None:
        scene = Scene(table)
        scene.succeed()
        refusal(RunClosed, scene.ledger.gates.open, scene.run, asked())

    def test_a_token_is_replaced_until_somebody_decides(self, table: Table) -> None:
        scene = GateScene(table)
        wait: Callable[..., Gate] = scene.gates.wait
        for token in ("one", "two"):
            assert token == wait(scene.run, "apply", scene.sha256, token).token
        later = scene.run.model_copy(update={"generation": 2})
        wait(later, "apply", scene.sha256, "three")
        assert (
            "no later generation waits"
            == refusal(Stale, wait, scene.run, "apply", scene.sha256, "four").clause
        )
        refusal(OtherSubject, wait, later, "apply", "f" * 64, "five")
        assert "three" == scene.say().token
        refusal(AlreadyDecided, wait, later, "apply", scene.sha256, "six")

    def test_about_something_else_it_is_asked_anew(self, table: Table) -> None:
        for prepare in (lambda scene: None, lambda scene: scene.say(), self._pass):
            scene = GateScene(table)
            prepare(scene)
            gate = scene.gates.open(scene.ledger.runs.get(scene.run_id), asked("e" * 64))
            assert (G.OPEN, "e" * 64, None) == (gate.status, gate.sha256, gate.decided_by)
            run = scene.ledger.runs.get(scene.run_id)
            assert ("apply", {}, True) == (run.waits_at, run.passed, scene.waits())
            refusal(OtherSubject, scene.spend)
            refusal(NotApproved, scene.gates.check_passed, run, "apply", scene.sha256)

    @staticmethod
    def _pass(scene: GateScene) -> None:
        scene.say()
        scene.spend()

    def test_gates_end_without_a_word(self, table: Table) -> None:
        for to in (G.EXPIRED, G.SUPERSEDED, G.WITHDRAWN):
            scene = GateScene(table)
            ended = scene.gates.end(scene.gate(), to, who="trueup:gate", why="so it is", by="run-2")
            assert (to, "run-2") == (ended.status, ended.superseded_by)
            assert ended == scene.gates.end(ended, to, who="trueup:gate", why="so it is") == scene.gate()
            assert not scene.waits()
            refusal(AlreadyDecided, scene.say)
            refusal(AlreadyDecided, scene.gates.open, scene.run, asked())

    def test_a_gate_does_not_end_over_a_word_that_came_first(self, table: Table) -> None:
        scene = GateScene(table)
        seen = scene.gate()
        scene.say()
        error = refusal(Stale, scene.gates.end, seen, G.SUPERSEDED, who="trueup:gate", why="newer")
        assert "the gate stands as it was read" == error.clause
        refusal(ValueError, scene.gates.end, scene.gate(), G.SUPERSEDED, who="trueup:gate", why="newer")

    def test_no_arrow_that_the_table_does_not_know_is_taken(self, table: Table) -> None:
        for before in G:
            for to in (G.EXPIRED, G.SUPERSEDED, G.WITHDRAWN):
                scene = GateScene(table)
                scene.write(status=before.value)
                if before is to or (before, to) in GATE_ARROWS:
                    assert to is scene.gates.end(scene.gate(), to, who="x", why="x").status
                else:
                    refusal(ValueError, scene.gates.end, scene.gate(), to, who="x", why="x")

    def test_all_gates_of_a_run_are_read_by_name(self, table: Table) -> None:
        scene = GateScene(table)
        scene.gates.open(scene.run, asked(name="canary"))
        assert ["apply", "canary"] == [gate.name for gate in scene.gates.of(scene.run_id)]
