"""Each kind of broken contract is refused by its own rule, in its own words, and a good one is accepted."""

from __future__ import annotations

from collections import Counter

import pytest

from trueup.contract import Judgement, Standing, judge_entry, locations, parse, verdict
from trueup.contract.reading import READING
from trueup.contract.rules import DOCUMENT, PARTITION, STANDING
from trueup.model.ledger import PartitionItem
from trueup.model.states import PartitionStatus, Phase

from .contract_cases import FIFTH, OUTPUT, REJECTS, SIXTH, TASK, Case, Row, entry, full_entry
from .contract_unreadable import MISSHAPEN, UNREADABLE
from .contract_untrue import BOOM, DISAGREEING, FOREIGN, STALE, UNTRUE, interrupted

ROWS = [*UNREADABLE, *MISSHAPEN, *STALE, *FOREIGN, *DISAGREEING, *UNTRUE]
REGISTRIES = (STANDING, DOCUMENT, PARTITION)
IDS = [row.kind for row in ROWS]
REMOVABLE = [row for row in ROWS if any(row.invariant in registry for registry in REGISTRIES)]


def item(case: Case, partition_id: str = FIFTH) -> PartitionItem:
    return case.facts.items[partition_id]


def test_a_good_contract_is_accepted() -> None:
    assert Judgement(Standing.GOOD, (), 40, TASK) == Case().judge()


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_broken_contract_is_refused_by_its_own_rule_with_the_figures(row: Row) -> None:
    judgement = row.broken(Case()).judge()

    assert (Standing.STALE if row.invariant in STANDING else Standing.REFUSED) == judgement.standing
    assert {row.invariant} == {refusal.invariant for refusal in judgement.refusals}
    assert row.says in judgement.refusals[0].message
    assert judgement.refusals[0].remedy


def test_no_two_kinds_of_broken_contract_get_the_same_message() -> None:
    messages = Counter(row.broken(Case()).judge().refusals[0].message for row in ROWS)

    assert len(ROWS) >= 60
    assert [] == [message for message, times in messages.items() if times > 1]


@pytest.mark.parametrize("row", REMOVABLE, ids=[row.kind for row in REMOVABLE])
def test_without_its_invariant_the_broken_contract_would_pass(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = next(registry for registry in REGISTRIES if row.invariant in registry)
    monkeypatch.delitem(registry, row.invariant)

    assert Standing.GOOD == row.broken(Case()).judge().standing


def test_every_rule_is_broken_by_some_row() -> None:
    rules = {*READING, *STANDING, *DOCUMENT, *PARTITION}

    assert rules == {row.invariant for row in ROWS}


def test_no_rule_is_registered_under_two_levels() -> None:
    assert len({*READING, *STANDING, *DOCUMENT, *PARTITION}) == sum(map(len, (READING, *REGISTRIES)))


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert Standing.GOOD == Case().has_text('"sliceId": 12', '"sliceId": 12.0').judge().standing


def test_optional_fields_may_be_left_out() -> None:
    case = Case(entry(SIXTH)).without("outputLocation").without("warnings")
    for field in ("recordsCounted", "skipped", "rejects", "outputs", "error"):
        del case.document["partitions"][0][field]

    assert Standing.GOOD == case.judge().standing


def test_many_schema_violations_are_cut_short_with_their_number() -> None:
    refusals = parse(b'{"schemaVersion": 1, ' + b", ".join(b'"x%d": 1' % n for n in range(30)) + b"}", 10_000)

    assert isinstance(refusals, list)
    assert 21 == len(refusals)
    assert "more fields are wrong" in refusals[-1].message


def test_a_refusal_reads_as_one_line() -> None:
    refusal = Case().reports(0, recordsUsed=714).judge().refusals[0]

    assert str(refusal).startswith(f"{FIFTH}: 720 read, and 714 used")
    assert "[read-is-used-skipped-rejected]" in str(refusal)
    assert str(refusal).endswith(refusal.remedy)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(interrupted(Case(), outputs=[], cursor="v1:48"), id="interrupted within a partition"),
        pytest.param(Case().says(status="INTERRUPTED"), id="interrupted between two"),
        pytest.param(interrupted(Case(), outputs=[], rejects=None), id="interrupted with rejects in parts"),
        pytest.param(Case().says(status="FAILED").reports(0, status="FAILED", error=BOOM), id="failed"),
        pytest.param(
            Case().known(reject_limit=2).says(status="FAILED").reports(0, status="REJECTED"), id="rejected"
        ),
        pytest.param(Case().says(status="FAILED"), id="the task failed between partitions"),
        pytest.param(Case(entry(SIXTH, recordsCounted=10)), id="counted"),
        pytest.param(
            Case(entry(SIXTH, recordsWritten=0, recordsUnchanged=10)).known(dry_run=True), id="a dry run"
        ),
        pytest.param(
            Case(entry(SIXTH, recordsWritten=0, recordsUnchanged=10))
            .known(phase=Phase.REHEARSE)
            .says(phase="rehearse"),
            id="a rehearsal",
        ),
        pytest.param(Case().known(reject_limit=3), id="exactly at the limit of rejects"),
        pytest.param(Case().says(finishedAt="2026-07-06T01:00:00Z"), id="finished in the second it started"),
    ],
)
def test_an_honest_contract_is_accepted(case: Case) -> None:
    assert () == case.judge().refusals


def test_an_empty_partition_is_accepted_where_the_job_allows_it() -> None:
    counts = {"recordsRead": 0, "recordsUsed": 0, "recordsProduced": 0, "recordsWritten": 0}
    case = Case(entry(SIXTH, cursor=None, **counts)).known(empty_allowed=True)

    assert Standing.GOOD == case.judge().standing


def test_a_task_that_failed_before_any_partition_is_accepted_as_failed() -> None:
    case = Case().says(status="FAILED", partitions=[])
    case.items.clear()
    case.sum_up()

    assert Standing.GOOD == case.judge().standing


def test_a_bad_partition_is_held_against_itself_only() -> None:
    case = Case().reports(0, recordsUsed=714)

    assert 1 == len(case.judge().against(item(case, FIFTH)))
    assert () == case.judge().against(item(case, SIXTH))


def test_a_bad_document_is_held_against_every_partition_that_its_launch_and_task_reported() -> None:
    case = Case().says(runId="another-run")

    assert ["run-is-this-run"] * 2 == [
        refusal.invariant for name in (FIFTH, SIXTH) for refusal in case.judge().against(item(case, name))
    ]


@pytest.mark.parametrize(
    "other", [{"launch": 39}, {"task": "arn:another"}, {"status": "RUNNING"}, {"status": "ACCEPTED"}]
)
def test_a_bad_document_is_never_held_against_what_others_reported(other: dict[str, object]) -> None:
    case = Case().says(runId="another-run").ledger_has(FIFTH, **other)

    assert () == case.judge().against(item(case))


@pytest.mark.parametrize("row", STALE, ids=lambda row: row.kind)
def test_a_stale_document_is_held_against_nobody(row: Row) -> None:
    case = row.broken(Case())
    case.ledger_has(FIFTH, launch=case.facts.launch, task=case.facts.task)

    assert () == case.judge().against(item(case))


def test_an_entry_whose_partition_a_later_launch_took_is_passed_over() -> None:
    case = Case().ledger_has(FIFTH, status="RUNNING", launch=41, task="arn:later", fence=41, cursor="v1:1")

    assert Standing.GOOD == case.judge().standing


@pytest.mark.parametrize("end", ["ACCEPTED", "REFUSED", "SKIPPED"])
def test_an_entry_whose_partition_was_decided_is_passed_over(end: str) -> None:
    case = Case().lists(0, cursor="v1:other").ledger_has(FIFTH, status=end)

    assert Standing.GOOD == case.judge().standing


def test_a_partition_that_the_ledger_does_not_know_was_never_taken() -> None:
    case = Case()
    del case.items[SIXTH]

    assert "the ledger has PENDING, not REPORTED" in " ".join(map(str, case.judge().refusals))


def test_an_entry_in_the_ledger_is_judged_without_any_document_and_under_any_launch() -> None:
    case = Case().known(launch=99, task="arn:another", generation=7)

    assert [] == judge_entry(item(case), case.facts)
    assert PartitionStatus.ACCEPTED == verdict(item(case), [])


# These break what the document says and leave a ledger that agrees with itself.
BY_DOCUMENT_ONLY = {
    "other outputs than reported",
    "another count than reported",
    "an end that the ledger never heard of",
    "INTERRUPTED with outputs",
}
ENTRY_ROWS = [row for row in ROWS if row.invariant in PARTITION and row.kind not in BY_DOCUMENT_ONLY]


@pytest.mark.parametrize("row", ENTRY_ROWS, ids=[row.kind for row in ENTRY_ROWS])
def test_an_entry_in_the_ledger_is_refused_by_the_same_rules(row: Row) -> None:
    case = row.broken(Case())
    reported = [one for one in case.facts.items.values() if one.status is PartitionStatus.REPORTED]

    assert {row.invariant} == {
        refusal.invariant for one in reported for refusal in judge_entry(one, case.facts)
    }


@pytest.mark.parametrize("status", [one for one in PartitionStatus if one is not PartitionStatus.REPORTED])
def test_only_a_reported_partition_is_judged(status: PartitionStatus) -> None:
    case = Case().ledger_has(FIFTH, status=status)

    with pytest.raises(ValueError, match=f"{FIFTH} is {status.value}"):
        judge_entry(item(case), case.facts)
    with pytest.raises(ValueError, match="only a REPORTED partition is judged"):
        verdict(item(case), [])


@pytest.mark.parametrize(
    ("said", "becomes"),
    [
        ("SUCCEEDED", PartitionStatus.ACCEPTED),
        ("FAILED", PartitionStatus.FAILED),
        ("REJECTED", PartitionStatus.REJECTED),
    ],
)
def test_a_report_without_refusal_becomes_what_it_says_and_with_one_refused(
    said: str, becomes: PartitionStatus
) -> None:
    case = Case().ledger_was_told(FIFTH, status=said)
    refusal = Case().says(runId="another-run").judge().refusals[0]

    assert becomes == verdict(item(case), [])
    assert PartitionStatus.REFUSED == verdict(item(case), [refusal])


def test_a_report_that_cannot_have_ended_is_refused_even_without_refusal() -> None:
    assert PartitionStatus.REFUSED == verdict(item(Case().ledger_has(FIFTH, entry=None)), [])
    assert PartitionStatus.REFUSED == verdict(item(Case().ledger_was_told(FIFTH, status="INTERRUPTED")), [])


def test_the_objects_to_look_up_are_outputs_and_rejects() -> None:
    elsewhere = [{"location": "https://example.org/a.csv", "sha256": "c" * 64, "records": 1}]
    contract = parse(Case(full_entry(), entry(SIXTH, outputs=elsewhere)).data, 65_536)

    assert not isinstance(contract, list)
    assert frozenset({OUTPUT, REJECTS}) == locations(*contract.partitions)
