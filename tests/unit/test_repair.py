"""Repairs in one process: what was signed is done, by compare-and-set, and looked at again."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from trueup.artifacts import comparison_key, repair_key, repair_plan_key
from trueup.artifacts.findings import lines_in, listed
from trueup.artifacts.store import place
from trueup.errors import ArtifactError, SourceError
from trueup.gating import before_repair
from trueup.jobs import Outcome, Reconcile
from trueup.model.base import canonical
from trueup.model.reconcile import Side
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.repair import RepairReport
from trueup.model.states import Phase, RunStatus
from trueup.testing import LocalRun
from trueup.testing.rows import MemoryRows

from .reconcile_cases import Row, Rows, damaged, job, rows

DELETES = {"deletes": "asked"}


def repair_of(
    both: Rows, repair: dict[str, Any] | None = None, hooks: type[Reconcile] = Reconcile, **more: Any
) -> LocalRun:
    of = job(repair=DELETES if repair is None else repair, **more.pop("changes", {}))
    return LocalRun(hooks, of, rows=both, approver="eve", **more)


def by_id(side: list[Row]) -> dict[int, Row]:
    return {row["id"]: row for row in side}


def outcomes(report: RepairReport) -> Counter[tuple[str, str]]:
    return Counter({(one.outcome, one.action.value): one.items for one in report.outcomes})


def lines(run: LocalRun, phase: Phase) -> list[dict[str, Any]]:
    return [
        line
        for one in run.repaired.lists
        if one.phase is phase
        for there in listed(run.artifacts, one)
        for line in lines_in(run.artifacts, phase, there)
    ]


def done(run: LocalRun) -> dict[int, str]:
    """The outcome of each item; each is told once."""
    found = [line for line in lines(run, Phase.REPAIR) if "outcome" in line]
    assert len(found) == len({tuple(line["key"]) for line in found})
    return {int(line["key"][0]): line["outcome"] for line in found}


def to(run: LocalRun, phase: Phase) -> None:
    """Step to the first point of a phase."""
    while run.phase is not phase:
        assert run.step() is not None


def test_what_was_approved_is_repaired_and_verified() -> None:
    both, wrong = damaged()
    run = repair_of(both)
    ended = run.run()
    assert (RunStatus.SUCCEEDED, "REPAIRED") == (ended.status, ended.reason)
    assert by_id(both["truth"]) == by_id(both["target"])
    kinds = Counter(wrong.values())
    assert {
        ("APPLIED", "insert"): kinds["MISSING"],
        ("APPLIED", "update"): kinds["MISMATCHED"],
        ("APPLIED", "delete"): kinds["EXTRA"],
    } == outcomes(run.repaired)
    assert len(wrong) == sum(one.items for one in run.repaired.verified if one.outcome == "VERIFIED")
    assert ("repair-and-delete", "eve") == (run.repaired.gate, run.repaired.approved_by)
    assert "DRIFT" == run.comparison.verdict


def test_the_contract_of_each_partition_adds_up() -> None:
    both, wrong = damaged()
    run = repair_of(both)
    run.run()
    repaired = run.ledger.verdicts.counts(run.run_id, Phase.REPAIR).tally().records
    assert (len(wrong),) * 4 == (repaired.read, repaired.used, repaired.produced, repaired.written)
    verified = run.ledger.verdicts.counts(run.run_id, Phase.VERIFY).tally().records
    assert (len(wrong), 0, 0) == (verified.read, verified.produced, verified.written)


def test_without_an_approver_a_run_ends_with_its_report() -> None:
    both, _ = damaged()
    before = [dict(row) for row in both["target"]]
    run = LocalRun(Reconcile, job(repair=DELETES), rows=both)
    assert "DRIFT: 43 differences are confirmed" == run.run().reason
    assert before == both["target"]


def test_a_clean_run_asks_nobody() -> None:
    run = repair_of(rows())
    assert "CLEAN" == run.run().reason
    assert [] == list(run.ledger.gates.of(run.run_id))


def test_nothing_is_deleted_unless_the_job_asks_and_the_gate_says_so() -> None:
    both, wrong = damaged()
    run = repair_of(both, {})
    run.run()
    extra = {key for key, kind in wrong.items() if kind == "EXTRA"}
    assert extra == by_id(both["target"]).keys() - by_id(both["truth"]).keys()
    assert "repair" == run.repaired.gate
    assert len(wrong) - len(extra) == run.repaired.items
    left = "3 rows of the target are not in the truth, and were not to be deleted"
    assert ("UNREPAIRED", [left]) == (run.repaired.verdict, run.repaired.reasons)


def test_nothing_is_deleted_where_something_could_not_be_compared() -> None:
    both, wrong = damaged()
    (double, *_) = (row for row in both["truth"] if row["id"] not in wrong)
    both["truth"].append(dict(double))
    run = repair_of(both)
    run.run()
    extra = {key for key, kind in wrong.items() if kind == "EXTRA"}
    assert ("INCOMPLETE", "repair") == (run.comparison.verdict, run.repaired.gate)
    twice = "1 keys are there more than once on a side, and were not compared"
    assert ("PARTIAL", f"something could not be compared: {twice}") == (
        run.repaired.verdict,
        run.repaired.reasons[0],
    )
    assert extra == by_id(both["target"]).keys() - by_id(both["truth"]).keys()
    assert len(wrong) - len(extra) == run.repaired.items


def test_what_changed_since_it_was_signed_is_left_alone() -> None:
    both, wrong = damaged()
    run = repair_of(both)
    to(run, Phase.REPAIR)
    mismatched = sorted(key for key, kind in wrong.items() if kind == "MISMATCHED")
    truth, target = mismatched[0], mismatched[-1]
    by_id(both["truth"])[truth]["v"] = "newer"
    by_id(both["target"])[target]["v"] = "somebody's own"
    run.run()
    told = done(run)
    assert ("STALE_TRUTH", "STALE_TARGET") == (told.pop(truth), told.pop(target))
    assert {"APPLIED"} == set(told.values())
    assert "somebody's own" == by_id(both["target"])[target]["v"]
    assert "UNREPAIRED" == run.repaired.verdict
    assert ["1 items: STALE_TARGET", "1 items: STALE_TRUTH"] == run.repaired.reasons


def test_what_holds_the_intended_value_without_our_write_is_stale() -> None:
    both, wrong = damaged()
    run = repair_of(both)
    to(run, Phase.REPAIR)
    key = next(key for key, kind in wrong.items() if kind == "MISMATCHED")
    by_id(both["target"])[key]["v"] = f"v{key}"
    run.run()
    assert "STALE_TARGET" == done(run)[key]


def test_what_differs_again_has_reappeared() -> None:
    both, wrong = damaged()
    run = repair_of(both)
    to(run, Phase.VERIFY)
    key = next(key for key, kind in wrong.items() if kind == "MISMATCHED")
    by_id(both["target"])[key]["v"] = "wrong again"
    ended = run.run()
    assert "REAPPEARED: 1 items differ again" == ended.reason
    assert [key] == [
        int(line["key"][0])
        for line in lines(run, Phase.VERIFY)
        if line["verification"] == "REAPPEARED" and not line.get("again")
    ]


def test_what_was_in_flight_at_the_first_look_is_verified_at_the_next() -> None:
    both, wrong = damaged()
    run = repair_of(both)
    to(run, Phase.VERIFY)
    key = next(key for key, kind in wrong.items() if kind == "MISMATCHED")
    by_id(both["truth"])[key]["v"] = "newer"
    run.step()
    while not any(line.get("again") for line in _verify_lines(run)):
        run.step()
    by_id(both["target"])[key]["v"] = "newer"
    assert "REPAIRED" == run.run().reason


def _verify_lines(run: LocalRun) -> list[dict[str, Any]]:
    prefix = f"runs/{run.run_id}/verify/findings/"
    store = run.artifacts.store
    return [
        json.loads(line)
        for key in store.list(prefix)
        if key.endswith(".jsonl")
        for line in store.get(key).splitlines()
    ]


@pytest.mark.parametrize("seed", range(2))
def test_the_breaker_ends_a_repair_that_goes_wrong(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.worker.repairing.AT_ONCE", 2)
    both, wrong = damaged()
    run = repair_of(both, {**DELETES, "breaker": {"share": 0.5, "sample": 4}}, seed=seed)
    to(run, Phase.REPAIR)
    for row in both["target"]:
        row["v"] += "!"
    before = {key: dict(row) for key, row in by_id(both["target"]).items()}
    ended = run.run()
    assert RunStatus.SUCCEEDED is ended.status
    told = done(run)
    assert 4 <= len(told) < len(wrong)
    left = len(wrong) - len(told)
    assert f"{left} items: the repair stopped: too many items were stale or failed" in run.repaired.reasons
    after = by_id(both["target"])
    assert all(after[key] == row for key, row in before.items())


def test_a_row_that_the_target_does_not_take_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    both, wrong = damaged()
    bad = next(key for key, kind in wrong.items() if kind == "MISMATCHED")
    whole = MemoryRows.apply

    def apply(self: MemoryRows, change: Any) -> Any:
        if change.key == (str(bad),):
            raise SourceError("too long for its column")
        return whole(self, change)

    monkeypatch.setattr(MemoryRows, "apply", apply)
    run = repair_of(both)
    run.run()
    assert "FAILED" == done(run)[bad]
    assert "1 items: FAILED" in run.repaired.reasons


def small() -> tuple[Rows, dict[int, str]]:
    """Twelve rows of which five are wrong, for what is run many times."""
    both = rows(12)
    wrong = {0: "MISSING", 3: "MISMATCHED", 7: "MISMATCHED", 8: "MISSING", 12: "EXTRA"}
    target = [row for row in both["target"] if wrong.get(row["id"]) != "MISSING"]
    both["target"] = [{**row, "v": "other"} if row["id"] in wrong else row for row in target]
    both["target"].append({"id": 12, "v": "extra"})
    return both, wrong


def test_killed_at_any_point_each_item_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.worker.repairing.AT_ONCE", 2)
    monkeypatch.setattr("trueup.worker.confirming.AT_ONCE", 2)
    one = {"partitions": {"by": "splits", "splits": []}}
    whole = repair_of(small()[0], changes=one)
    to(whole, Phase.REPAIR)
    points = 0
    while whole.step() is not None:
        points += 1
    assert points > 20
    for point in range(1, points + 1):
        both, wrong = small()
        run = repair_of(both, changes=one)
        to(run, Phase.REPAIR)
        for _ in range(point):
            run.step()
        run.kill()
        ended = run.run()
        assert (RunStatus.SUCCEEDED, "REPAIRED") == (ended.status, ended.reason), point
        assert dict.fromkeys(wrong, "APPLIED") == done(run), point
        assert by_id(both["truth"]) == by_id(both["target"]), point


@pytest.mark.parametrize("seed", range(4))
def test_killed_between_two_writes_the_intent_on_record_says_whose_write_it_was(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        pass

    both, wrong = damaged()
    rng = random.Random(seed)
    deaths = {rng.randrange(len(wrong)) for _ in range(6)}
    whole, calls = MemoryRows.apply, 0

    def apply(self: MemoryRows, change: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls in deaths and rng.random() < 0.5:
            raise Died
        made = whole(self, change)
        if calls in deaths:
            raise Died
        return made

    monkeypatch.setattr(MemoryRows, "apply", apply)
    run = repair_of(both, seed=seed, concurrency=2)
    while True:
        try:
            if run.step() is None:
                break
        except Died:
            run.kill()
    assert dict.fromkeys(wrong, "APPLIED") == done(run)
    assert "REPAIRED" == run.repaired.verdict


def test_an_owners_write_path_is_used_and_not_only_believed() -> None:
    both, wrong = damaged()
    lost = next(key for key, kind in wrong.items() if kind == "MISSING")
    asked: list[tuple[Any, Any]] = []

    class Owner(Reconcile):
        def repair_one(self, item: Any, expected: Any) -> Outcome:
            asked.append((item, expected))
            key = int(item["key"][0])
            target = both["target"]
            if key == lost:
                return Outcome(written=1)
            target[:] = [row for row in target if row["id"] != key]
            if item["values"] is not None:
                target.append(dict(item["values"]))
            return Outcome(written=1)

    run = repair_of(both, hooks=Owner)
    run.run()
    told = done(run)
    assert "FAILED" == told.pop(lost)
    assert {"APPLIED"} == set(told.values())
    key = next(key for key, kind in wrong.items() if kind == "MISMATCHED")
    assert (
        {"key": [str(key)], "action": "update", "values": {"id": key, "v": f"v{key}"}},
        {"id": key, "v": "other"},
    ) in asked


# Signed or nothing.


def failed(run: LocalRun, both: Rows, before: list[Row]) -> str:
    ended = run.run()
    assert RunStatus.FAILED is ended.status
    assert before == both["target"]
    return str(ended.reason)


def signed() -> tuple[LocalRun, Rows, list[Row]]:
    """A run whose report is approved and of which nothing is repaired yet."""
    both, _ = damaged()
    run = repair_of(both)
    to(run, Phase.REPAIR)
    return run, both, [dict(row) for row in both["target"]]


def test_a_report_that_was_changed_after_it_was_signed_repairs_nothing() -> None:
    run, both, before = signed()
    key = comparison_key(run.run_id, "json")
    report = run.comparison.model_copy(update={"reasons": ["nothing to see here"]})
    run.artifacts.store.put(key, canonical(report.document()))
    failed(run, both, before)


def test_an_object_of_findings_that_was_changed_repairs_nothing_of_its_partition() -> None:
    run, both, before = signed()
    for one in run.comparison.lists:
        for there in listed(run.artifacts, one) if one.phase is Phase.CONFIRM else ():
            key = place(there.location)[1]
            run.artifacts.store.put(key, run.artifacts.store.get(key).replace(b"MISSING", b"EXTRA"))
    failed(run, both, before)


def test_another_plan_than_the_report_comes_to_repairs_nothing() -> None:
    run, both, before = signed()
    for part in ("key=..100", "key=100..200", "key=200.."):
        run.artifacts.store.put(repair_plan_key(run.run_id, part, 0), b"{}\n")
    failed(run, both, before)


def test_a_report_of_another_run_repairs_nothing() -> None:
    run, both, before = signed()
    other = repair_of(damaged()[0], seed=9)
    to(other, Phase.REPAIR)
    assert other.run_id != run.run_id
    data = other.artifacts.store.get(comparison_key(other.run_id, "json"))
    run.artifacts.store.put(comparison_key(run.run_id, "json"), data)
    failed(run, both, before)


@pytest.mark.parametrize("of", [{"run_id": "another"}, {"plan_sha256": "0" * 64}], ids=["run", "plan"])
def test_what_was_signed_here_and_is_of_another_run_or_plan_repairs_nothing(
    of: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(artifacts: Any, ledger: Any, run: Any, plan: Any) -> Any:
        key = comparison_key(run.run_id, "json")
        report = ReconcileReport.model_validate_json(artifacts.store.get(key)).model_copy(update=of)
        artifacts.store.put(key, canonical(report.document()))
        return before_repair(artifacts, ledger, run, plan)

    monkeypatch.setattr("trueup.testing.local_run.before_repair", asked)
    failed(*signed())


@pytest.mark.parametrize("damage", ["gate", "run"])
def test_an_approval_that_was_taken_away_repairs_nothing(damage: str) -> None:
    from trueup.ledger import keys
    from trueup.ledger.table import Write

    run, both, before = signed()
    table = run.ledger.gates._table
    if damage == "gate":
        gate = keys.gate(run.run_id, "repair-and-delete")
        table.write(Write(gate, sets={"status": "APPROVED"}))
    else:
        table.write(Write(keys.run(run.run_id), sets={"passed": {}}))
    failed(run, both, before)


# Taken back.


def undo_of(run: LocalRun, both: Rows, **more: Any) -> LocalRun:
    return LocalRun(Reconcile, run.job, rows=both, approver="zoe", undoes=run, seed=77, **more)


def test_an_undo_gives_back_what_every_row_was() -> None:
    both, wrong = damaged()
    before = by_id(both["target"])
    run = repair_of(both)
    run.run()
    undo = undo_of(run, both)
    ended = undo.run()
    assert (RunStatus.SUCCEEDED, "UNDONE") == (ended.status, ended.reason)
    assert before == by_id(both["target"])
    assert dict.fromkeys(wrong, "APPLIED") == done(undo)
    assert ("undo", "zoe", run.run_id) == (
        undo.repaired.gate,
        undo.repaired.approved_by,
        undo.repaired.undoes,
    )
    assert len(wrong) == sum(one.items for one in undo.repaired.verified if one.outcome == "VERIFIED")


def test_an_undo_does_not_ask_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    both, wrong = damaged()
    run = repair_of(both)
    run.run()
    fetch = MemoryRows.fetch

    def gone(self: MemoryRows, keys: Any) -> Any:
        if self._side is Side.TRUTH:
            raise SourceError("There is no truth any more.")
        return fetch(self, keys)

    monkeypatch.setattr(MemoryRows, "fetch", gone)
    undo = undo_of(run, both)
    assert (RunStatus.SUCCEEDED, "UNDONE") == (undo.run().status, undo.repaired.verdict)
    assert dict.fromkeys(wrong, "APPLIED") == done(undo)


def test_an_undo_leaves_alone_what_changed_since_and_what_was_never_applied() -> None:
    both, wrong = damaged()
    run = repair_of(both)
    to(run, Phase.REPAIR)
    mismatched = sorted(key for key, kind in wrong.items() if kind == "MISMATCHED")
    healed, changed = mismatched[0], mismatched[1]
    by_id(both["target"])[healed]["v"] = f"v{healed}"
    run.run()
    by_id(both["target"])[changed]["v"] = "newer"
    undo = undo_of(run, both)
    undo.run()
    after = by_id(both["target"])
    assert (f"v{healed}", "newer") == (after[healed]["v"], after[changed]["v"])
    told = done(undo)
    assert healed not in told
    assert "STALE_TARGET" == told.pop(changed)
    assert {"APPLIED"} == set(told.values())


def test_an_undo_of_what_was_changed_since_it_was_approved_does_nothing() -> None:
    both, _ = damaged()
    run = repair_of(both)
    run.run()
    before = [dict(row) for row in both["target"]]
    undo = undo_of(run, both)
    undo.plan()
    report = run.repaired.model_copy(update={"reasons": ["changed"]})
    run.artifacts.store.put(repair_key(run.run_id), canonical(report.document()))
    failed(undo, both, before)


def changed_image(run: LocalRun) -> None:
    """Another row as the one that was there before."""
    (found, *_) = [one for one in run.repaired.lists if one.phase is Phase.REPAIR]
    one = listed(run.artifacts, found)[0]
    key = place(one.location)[1]
    run.artifacts.store.put(key, run.artifacts.store.get(key).replace(b"other", b"mine!"))


def test_rows_as_they_were_that_somebody_changed_are_not_given_back() -> None:
    both, _ = small()
    run = repair_of(both, changes={"partitions": {"by": "splits", "splits": []}})
    run.run()
    before = [dict(row) for row in both["target"]]
    undo = undo_of(run, both)
    undo.plan()
    changed_image(run)
    failed(undo, both, before)
    with pytest.raises(ArtifactError, match="as was reported"):
        LocalRun(Reconcile, run.job, rows=both, approver="zoe", undoes=run, seed=78).plan()


def test_an_undo_of_another_runs_repair_does_nothing() -> None:
    both, _ = damaged()
    run = repair_of(both)
    run.run()
    before = [dict(row) for row in both["target"]]
    other = run.repaired.model_copy(update={"run_id": "another"})
    run.artifacts.store.put(repair_key(run.run_id), canonical(other.document()))
    failed(undo_of(run, both), both, before)


def test_killed_at_any_point_each_repair_is_taken_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.worker.repairing.AT_ONCE", 2)
    one = {"partitions": {"by": "splits", "splits": []}}
    points, point = 1, 0
    while point < points:
        both, wrong = small()
        before = by_id(both["target"])
        run = repair_of(both, changes=one)
        run.run()
        undo = undo_of(run, both)
        number = 0
        while undo.step() is not None:
            number += 1
            if number == point:
                undo.kill()
        points, point = max(points, number if point == 0 else 0), point + 1
        assert dict.fromkeys(wrong, "APPLIED") == done(undo), point
        assert before == by_id(both["target"]), point
    assert points > 20
