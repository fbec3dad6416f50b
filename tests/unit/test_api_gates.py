"""Gates through the API: who signs decides, each refusal is a problem of its own, a word wakes the run."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.ledger import keys
from trueup.ledger.table import Write
from trueup.model.states import GateStatus, RunStatus

from .api_cases import ANN, Client, api_of
from .handler_world import World
from .worker_cases import job_file, job_of

BOB, EVE = ANN.replace("ann", "bob"), ANN.replace("ann", "eve")
START = {"job": "numbers", "requestId": "r-1", "keys": ["a", "b", "c"]}


class Waiting:
    """A run of Ann's that waits for Bob, and who calls the API about it."""

    def __init__(self, **approval: Any) -> None:
        self.approval = {"required": True, "roles": ["user/bob"], **approval}
        self.world = World(job_of(), job_file(approval=self.approval))
        self.client = Client(api_of(self.world))
        _, started = self.client.call("POST", "/runs", body=START)
        self.run_id = str(started["runId"])
        self.execution = self.world.steps.executions[started["execution"]]
        self.gate = self.world.wait(self.execution)

    def path(self, verb: str, name: str = "apply") -> str:
        """Where a word is given."""
        return f"/runs/{self.run_id}/gates/{name}/{verb}"

    def word(self, **changes: Any) -> dict[str, Any]:
        """A call of Bob's, as it should be but for the changes."""
        body = {"sha256": self.gate.sha256, "comment": "looked at it", **changes.pop("body", {})}
        return {"caller": BOB, "body": body, **changes}


@pytest.fixture
def here() -> Waiting:
    """A run that waits."""
    return Waiting()


def test_what_waits_is_listed_and_never_with_its_token(here: Waiting) -> None:
    (listed,) = here.client.get("/gates")["gates"]
    (shown,) = here.client.get(f"/runs/{here.run_id}/gates")["gates"]
    for gate in (listed, shown):
        assert (here.run_id, "apply", "OPEN", here.gate.sha256) == tuple(
            gate[name] for name in ("runId", "name", "status", "sha256")
        )
        assert here.execution.token not in str(gate)


def test_a_gate_shows_what_is_approved(here: Waiting) -> None:
    (gate,) = here.client.get(f"/runs/{here.run_id}/gates")["gates"]
    facts = {fact["name"]: fact["value"] for fact in gate["facts"]}
    plan = here.world.artifacts.plan_of(here.world.run(here.run_id))
    assert ("a, b, c", "3", "{}") == (facts["window"], facts["partitions"], facts["parameters"])
    assert "numbers, guard fence" == facts["writes"]
    assert plan.job.target.guard.cannot_prevent == facts["cannot prevent"]
    assert f"{plan.write_code.task_definition} {plan.write_code.image_digest}" == facts["code"]
    assert facts["dollars"].endswith(" estimated")


def test_a_rehearsal_and_a_canary_are_shown_with_their_records() -> None:
    here = Waiting(required=False, canary=1)
    (gate,) = here.client.get(f"/runs/{here.run_id}/gates")["gates"]
    facts = {fact["name"]: fact["value"] for fact in gate["facts"]}
    assert facts["applied"].startswith("1 of 3 partitions: read 12, ")
    assert facts["item=a"].startswith("ACCEPTED: read 12, ")


def test_what_was_changed_is_shown_as_changed(here: Waiting) -> None:
    here.world.artifacts.store.put(here.gate.key, b"{}")
    (gate,) = here.client.get(f"/runs/{here.run_id}/gates")["gates"]
    assert ["changed"] == [fact["name"] for fact in gate["facts"]]
    assert here.client.get(f"/runs/{here.run_id}")["gate"]["name"] == "apply"


def test_a_run_shows_that_it_waits_and_for_which_command(here: Waiting) -> None:
    detail = here.client.get(f"/runs/{here.run_id}")
    assert f"a person at gate apply: trueup approve {here.run_id} apply" == detail["waitsFor"]
    assert ("apply", "apply") == (detail["gate"]["name"], detail["run"]["waitsAt"])


def test_an_approval_wakes_the_run_which_goes_on(here: Waiting) -> None:
    status, gate = here.client.call("POST", here.path("approve"), **here.word())
    assert (200, "APPROVED", BOB, "looked at it") == (
        status,
        gate["status"],
        gate["decidedBy"],
        gate["comment"],
    )
    assert {here.execution.token} == here.world.people.woken
    here.world.play(here.execution)
    assert RunStatus.SUCCEEDED is here.world.run(here.run_id).status
    assert [] == here.client.get("/gates")["gates"]
    assert here.client.get(f"/runs/{here.run_id}")["gate"] is None


def test_said_again_after_a_crash_it_wakes_the_run_once_more(here: Waiting) -> None:
    here.world.people.unreachable = True
    assert 200 == here.client.call("POST", here.path("approve"), **here.word())[0]
    here.world.people.unreachable = False
    assert set() == here.world.people.woken
    assert 200 == here.client.call("POST", here.path("approve"), **here.word())[0]
    assert {here.execution.token} == here.world.people.woken


def test_a_rejection_ends_the_run_with_its_comment(here: Waiting) -> None:
    here.client.call("POST", here.path("reject"), **here.word(body={"comment": "wrong window"}))
    here.world.play(here.execution)
    run = here.world.run(here.run_id)
    assert (RunStatus.CANCELLED, "rejected at gate apply: wrong window") == (run.status, run.reason)


@pytest.mark.parametrize(
    ("changes", "status", "kind", "says"),
    [
        ({"caller": ANN}, 403, "forbidden", "cannot approve it. Ask somebody else to look at it."),
        ({"caller": EVE}, 403, "forbidden", "Ask one of user/bob."),
        ({"caller": ""}, 403, "unsigned", "Sign the call"),
        ({"body": {"sha256": "f" * 64}}, 409, "refused", "not about ffffffffffff"),
        ({"body": {"sha256": "f" * 8}}, 400, "wrong-request", "Correct it."),
        ({"body": {"decidedBy": BOB}}, 400, "wrong-request", "there is no such field"),
    ],
)
def test_a_word_that_does_not_count_is_a_problem_that_says_why(
    here: Waiting, changes: dict[str, Any], status: int, kind: str, says: str
) -> None:
    found = here.client.problem("POST", here.path("approve"), **here.word(**changes))
    assert (status, kind) == found[:2]
    assert says in found[3]
    assert set() == here.world.people.woken
    assert here.world.ledger.gates.get(here.run_id, "apply").is_waiting


def test_a_role_is_matched_by_the_session_that_assumed_it() -> None:
    here = Waiting(roles=["ReleaseManager"])
    role = "arn:aws:sts::123456789012:assumed-role/ReleaseManager/bob"
    assert 403 == here.client.problem("POST", here.path("approve"), **here.word())[0]
    assert 200 == here.client.call("POST", here.path("approve"), **here.word(caller=role))[0]


def test_too_late_and_decided_by_somebody_else_are_refused() -> None:
    here = Waiting(roles=[])
    here.client.call("POST", here.path("approve"), **here.word())
    found = here.client.problem("POST", here.path("reject"), **here.word(caller=EVE))
    assert (409, "refused") == found[:2]
    assert "an approval serves once" in found[3]
    here = Waiting()
    here.world.clock.pass_(86_400)
    assert "was over at 2026-01-02" in here.client.problem("POST", here.path("approve"), **here.word())[3]


def test_a_gate_or_a_run_that_is_not_there_is_not_found(here: Waiting) -> None:
    for path in (here.path("approve", "repair"), "/runs/x/gates/apply/approve"):
        assert 404 == here.client.problem("POST", path, **here.word())[0]
    assert 404 == here.client.problem("GET", "/runs/x/gates")[0]


def test_a_report_that_another_version_made_is_told_as_that(here: Waiting) -> None:
    from .test_handlers_gates import report_of  # which has a verdict alone

    run = here.world.run(here.run_id)
    asked = report_of(here.world, run)
    here.world.ledger.gates.open(run, asked)
    gate = here.client.get(f"/runs/{here.run_id}/gates")["gates"][1]
    ((name, value),) = (fact.values() for fact in gate["facts"])
    assert ("repair", "unreadable") == (gate["name"], name)
    assert value.startswith("Not in the form of this version: ")


def test_status_says_nothing_of_a_gate_that_was_decided(here: Waiting) -> None:
    here.world.table.write(Write(keys.gate(here.run_id, "apply"), sets={"status": GateStatus.APPROVED.value}))
    assert here.client.get(f"/runs/{here.run_id}")["gate"] is None
