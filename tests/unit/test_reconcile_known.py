"""Known differences: signed they are no drift, changed or expired they are; what is forged stops a run."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trueup.artifacts import comparison_key
from trueup.compare import State
from trueup.compare.findings import DRIFT
from trueup.errors import NotFound, OtherSubject, OwnRequest, RequestError, TrueupError
from trueup.knowing import Knowing
from trueup.ledger import keys
from trueup.ledger.table import Write
from trueup.model.base import sha256
from trueup.model.known import MOST_WORDS, Known, KnownWord, WithdrawWord
from trueup.model.reconcile_report import AGE_NAMES
from trueup.model.repair import planned
from trueup.model.result import LONGEST_CURSOR
from trueup.model.states import Phase, RunStatus
from trueup.reporting.ages_page import known_section
from trueup.reporting.evidence import Evidences
from trueup.testing import LocalRun
from trueup.worker.confirming import Look

from .reconcile_cases import Days, Rows, first_seen, job, lines, rows, states, wrong

BOB = "arn:aws:iam::123456789012:user/bob"


def report_hash(run: LocalRun) -> str:
    return sha256(run.artifacts.store.get(comparison_key(run.run_id, "json")))


def sign(run: LocalRun, *of: int, days: float = 30, who: str = BOB, **changes: Any) -> Known:
    """Bob's word about these keys of a run's report, or about all that it confirms."""
    word = {
        "sha256": report_hash(run),
        "until": run.clock.now() + timedelta(days=days),
        "why": "the other system rounds",
        "keys": [[str(key)] for key in of] or None,
        **changes,
    }
    knowing = Knowing(run.ledger, run.artifacts, run.clock)
    return knowing.sign(run.run_id, KnownWord.model_validate(word), who)


def test_what_was_signed_is_counted_apart_and_is_no_drift() -> None:
    days = Days()
    both = wrong(7, 150)
    known = sign(days.run(both))
    run = days.run(both)
    report = run.comparison
    assert {("KNOWN", "MISMATCHED"): 2} == states(report)
    assert "CLEAN" == report.verdict
    assert ["2 differences are known: they were signed, are as they were, and have not expired"] == (
        report.reasons
    )
    assert "CLEAN: 2 differences are known" in (run.ledger.runs.get(run.run_id).reason or "")
    (line,) = report.known
    assert (known.known_id, BOB, known.until, known.why, 2, 2) == (
        line.known_id,
        line.who,
        line.until,
        line.why,
        line.signed,
        line.findings,
    )
    assert [] == report.ages.lines
    assert 2 == report.counts["mismatched"]
    told = [one["known"] for one in lines(run, Phase.CONFIRM)]
    assert [(known.known_id, BOB)] * 2 == [(one["id"], one["who"]) for one in told]
    page = "".join(known_section(report))
    for said in ("Known differences", BOB, known.why):
        assert said in page


def test_a_run_that_was_planned_before_a_word_was_withdrawn_knows_it_and_the_next_does_not() -> None:
    days = Days()
    both = wrong(7, 150)
    first = days.run(both)
    known = sign(first)
    planned_before = days.make(both)
    planned_before.plan()
    knowing = Knowing(first.ledger, first.artifacts, first.clock)
    knowing.withdraw(first.run_id, known.known_id, WithdrawWord(why="through"), BOB)
    planned_before.run()
    assert {("KNOWN", "MISMATCHED"): 2} == states(planned_before.comparison)
    after = days.run(both)
    assert ("DRIFT", {("CONFIRMED", "MISMATCHED"): 2}) == (after.comparison.verdict, states(after.comparison))
    assert {days.began[0]} == set(first_seen(after).values())


@pytest.mark.parametrize(
    "changed",
    [
        {"id": 7, "v": "something else"},
        None,
    ],
    ids=["another value", "another class"],
)
def test_a_target_that_changed_is_drift_again(changed: dict[str, Any] | None) -> None:
    days = Days()
    both = wrong(7, 150)
    sign(days.run(both))
    target = [changed if row["id"] == 7 else row for row in both["target"]]
    run = days.run({**both, "target": [row for row in target if row]})
    kind = "MISSING" if changed is None else "MISMATCHED"
    assert {("KNOWN", "MISMATCHED"): 1, ("CONFIRMED", kind): 1} == states(run.comparison)
    assert "DRIFT" == run.comparison.verdict
    assert [(2, 1)] == [(one.signed, one.findings) for one in run.comparison.known]


def test_a_truth_that_changed_is_drift_again() -> None:
    days = Days()
    both = wrong(7)
    sign(days.run(both))
    truth = [{**row, "v": "v8"} if row["id"] == 7 else row for row in both["truth"]]
    assert "DRIFT" == days.run({**both, "truth": truth}).comparison.verdict


def test_what_expired_is_drift_again_and_as_old_as_it_was() -> None:
    days = Days()
    both = wrong(7)
    sign(days.run(both), days=1.5)
    assert "CLEAN" == days.run(both).comparison.verdict
    run = days.run(both)
    assert ("DRIFT", []) == (run.comparison.verdict, run.comparison.known)
    assert {7: days.began[0]} == first_seen(run)


def test_what_expires_between_the_plan_and_the_second_look_is_drift() -> None:
    days = Days()
    both = wrong(7)
    sign(days.run(both), days=1 + 30 / 86_400)
    run = days.make(both)
    assert run.plan().known is not None
    run.run()
    assert "DRIFT" == run.comparison.verdict
    assert [0] == [one.findings for one in run.comparison.known]


def test_before_it_expires_it_can_be_signed_again() -> None:
    days = Days()
    both = wrong(7)
    sign(days.run(both), days=1.5)
    second = days.run(both)
    again = sign(second, days=60)
    third = days.run(both)
    assert "CLEAN" == third.comparison.verdict
    assert [again.known_id] == [one.known_id for one in third.comparison.known]


def test_only_what_is_not_known_is_repaired() -> None:
    of = job(repair={"deletes": "asked"})
    days = Days()
    both = wrong(7, 150)
    sign(days.run(both, of), 7)
    run = days.run(both, of, approver=BOB)
    assert {("KNOWN", "MISMATCHED"): 1, ("CONFIRMED", "MISMATCHED"): 1} == states(run.comparison)
    assert [("150",)] == [one.key for one in planned(lines(run, Phase.CONFIRM), deletes=True)]
    held = {row["id"]: row["v"] for row in both["target"]}
    assert ("other", "v150") == (held[7], held[150])
    third = days.run(both, of, approver=BOB)
    assert RunStatus.SUCCEEDED is third.ledger.runs.get(third.run_id).status
    assert "CLEAN" == third.comparison.verdict


def test_what_could_not_be_compared_is_not_clean_because_the_rest_is_known() -> None:
    days = Days()
    both = wrong(7)
    sign(days.run(both))
    both["target"].append({"id": 150, "v": "twice"})
    assert "INCOMPLETE" == days.run(both).comparison.verdict


def test_it_is_known_of_the_same_target_alone_and_of_any_part_of_it() -> None:
    days = Days()
    both = wrong(7)
    sign(days.run(both))
    elsewhere = job(target={"kind": "dynamodb", "table": "other"})
    assert "DRIFT" == days.run(both, elsewhere).comparison.verdict
    recut = job(partitions={"by": "splits", "splits": [7, 8]})
    assert "CLEAN" == days.run(both, recut).comparison.verdict


def nothing_is_signed(run: LocalRun) -> bool:
    return [] == list(run.ledger.known.of("numbers", run.clock.now()))


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"sha256": "0" * 64}, OtherSubject, "not 000000000000"),
        ({"who": "local"}, OwnRequest, "asked for run"),
        ({"days": 0}, RequestError, "is not ahead"),
        ({"days": 367}, RequestError, "more than 366 days ahead"),
        ({"keys": [["7"], ["8"]]}, RequestError, "does not confirm that 8 differs"),
    ],
    ids=["another hash", "the requester", "no time", "too long", "a key that agrees"],
)
def test_a_word_is_refused(changes: dict[str, Any], error: type[TrueupError], told: str) -> None:
    run = Days().run(wrong(7))
    with pytest.raises(error, match=told):
        sign(run, **changes)
    assert nothing_is_signed(run)


def test_there_is_nothing_to_sign_where_nothing_is_confirmed_or_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clean = Days().run(rows())
    with pytest.raises(RequestError, match="confirms no difference"):
        sign(clean)
    monkeypatch.setattr("trueup.knowing.MOST_SIGNED", 2)
    many = Days().run(wrong(1, 2, 3))
    with pytest.raises(RequestError, match="confirms 3 differences, and one word signs 2"):
        sign(many)
    assert 2 == sign(many, 1, 3).number
    monkeypatch.setattr("trueup.knowing.MOST_KNOWN", 2)
    with pytest.raises(RequestError, match="2 differences of this target are known already"):
        sign(many, 2)
    with pytest.raises(NotFound):
        Knowing(many.ledger, many.artifacts, many.clock).sign("none", _any_word(many), BOB)


def _any_word(run: LocalRun) -> KnownWord:
    return KnownWord(sha256="0" * 64, until=run.clock.now(), why="because")


def test_the_same_word_again_changes_nothing() -> None:
    run = Days().run(wrong(7))
    until = run.clock.now() + timedelta(days=3)
    first = sign(run, until=until)
    run.clock.sleep(60)
    assert first == sign(run, until=until)
    assert 1 == sum(entry.verb == "sign-known" for entry in run.ledger.audit.of(run.run_id))


def test_a_word_that_nobody_gave_stops_the_run_before_it_compares() -> None:
    days = Days()
    both = wrong(7)
    first = days.run(both)
    known = sign(first)
    longer = known.model_copy(update={"until": known.until + timedelta(days=300)})
    days.table.write(Write(keys.known(known.job, known.known_id), item=longer.document()))
    with pytest.raises(RequestError, match="the audit trail does not say it so"):
        days.run(both)


def test_what_was_signed_and_then_changed_in_s3_stops_the_run() -> None:
    days = Days()
    both = wrong(7)
    known = sign(days.run(both))
    other = json.loads(days.store.get(known.key))
    other[0]["key"] = ["8"]
    days.store.put(known.key, json.dumps(other).encode())
    with pytest.raises(RequestError, match="not as they were signed"):
        days.run(wrong(8))


def test_what_a_plan_names_as_known_and_was_changed_since_is_never_clean() -> None:
    days = Days()
    sign(days.run(wrong(7)))
    run = days.make(wrong(7, 8))
    ref = run.plan().known
    assert ref is not None
    pinned = json.loads(days.store.get(ref.key))
    pinned["words"][0]["items"].append({**pinned["words"][0]["items"][0], "key": ["8"]})
    days.store.put(ref.key, json.dumps(pinned).encode())
    run.run()
    assert "ERROR" == run.comparison.verdict
    assert any(ref.key in reason for reason in run.comparison.reasons)


def test_what_was_known_is_evidence() -> None:
    days = Days()
    both = wrong(7)
    sign(days.run(both))
    run = days.run(both)
    ended = run.ledger.runs.get(run.run_id)
    evidence = Evidences(run.ledger, run.artifacts)
    evidence.keep(ended)
    checked = evidence.checked(ended)
    assert "known differences" in {one.kind for one in checked.manifest.objects}
    assert {} == checked.changed


def test_killed_at_any_point_of_the_second_look_a_run_counts_what_is_known_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trueup.worker.confirming.AT_ONCE", 3)
    both: Rows = wrong(*range(0, 300, 30))

    def second(kill_at: int | None) -> tuple[LocalRun, list[int]]:
        days = Days()
        sign(days.run(both), *range(0, 300, 60))
        run = days.make(both)
        phases = []
        while run.step() is not None:
            phases.append(run.phase)
            if len(phases) == kill_at:
                run.kill()
        return run, [number for number, one in enumerate(phases, 1) if one is Phase.CONFIRM]

    whole, points = second(None)
    assert {("KNOWN", "MISMATCHED"): 5, ("CONFIRMED", "MISMATCHED"): 5} == states(whole.comparison)
    for point in points:
        run, _ = second(point)
        assert states(whole.comparison) == states(run.comparison), point
        assert [5] == [one.findings for one in run.comparison.known], point
        told = [int(one["key"][0]) for one in lines(run, Phase.CONFIRM) if one["state"] == "KNOWN"]
        assert list(range(0, 300, 60)) == told, point


def test_as_many_words_as_are_good_at_once_fit_a_cursor() -> None:
    words = {f"{number:012x}": 10**6 for number in range(MOST_WORDS)}
    states = {f"{state} {kind}": 10**9 for state in State for kind in DRIFT}
    ages = dict.fromkeys(AGE_NAMES, 10**9)
    look = Look(
        datetime.now(UTC), 10**6, 10**9, 10**9, states, ages, "2026-01-01T00:00:00Z", words, "x" * 800
    )
    assert len(look.cursor()) <= LONGEST_CURSOR


def test_a_word_too_many_is_refused_with_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.knowing.MOST_WORDS", 2)
    days = Days()
    run = days.run(wrong(7, 150, 250))
    first = sign(run, 7)
    sign(run, 150)
    with pytest.raises(RequestError, match="known by 2 words already, and there may be 2"):
        sign(run, 250)
    assert first == sign(run, 7)
    days.clock.pass_(31 * 86400)
    assert 1 == sign(run, 250).number
