"""Rehearsals through the machines: a dry run, and a sample before everything is applied."""

from __future__ import annotations

import psycopg
import pytest

from trueup.model.report import Report
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.reporting import report_key

from .numbered import RECORDS, assert_exact, assert_nothing_is_left, used
from .rig import Begun, Case, Rig
from .watching import tasks_of

pytestmark = pytest.mark.timeout(600)


def modes(rig: Rig, run: Begun, phase: str) -> set[str]:
    """The modes of the task definitions under which a phase's tasks ran."""
    tasks = [task for task in tasks_of(rig.up, run.run_id) if f'"phase":"{phase}"' in order(task)]
    return {task["taskDefinitionArn"].rpartition(":")[0].rpartition("-")[2] for task in tasks}


def order(task: dict[str, dict[str, list[dict[str, list[dict[str, str]]]]]]) -> str:
    """What a task was told, without spaces."""
    (container,) = task["overrides"]["containerOverrides"]
    return next(one["value"] for one in container["environment"] if one["name"] == "TRUEUP_ORDER").replace(
        " ", ""
    )


def rehearsed(rig: Rig, run: Begun) -> list[str]:
    """The partitions that a rehearsal accepted, each with its exact figures and nothing written."""
    items = list(rig.up.ledger.partitions.all(run.run_id, Phase.REHEARSE))
    for item in items:
        figures = item.counters
        assert PartitionStatus.ACCEPTED is item.status
        assert (RECORDS, 3, 3) == (figures.read, figures.skipped, figures.rejected)
        # What would be written counts as unchanged, so that the equation holds.
        assert (len(used()), 0, len(used())) == (figures.used, figures.written, figures.unchanged)
    counts = rig.up.ledger.verdicts.counts(run.run_id, Phase.REHEARSE).tally()
    assert (len(items), len(items) * RECORDS, 0) == (
        counts.partitions,
        counts.records.read,
        counts.records.written,
    )
    return sorted(item.partition_id for item in items)


def written(rig: Rig, run: Begun) -> int:
    """How many rows there are of a run's days, and how often one was applied."""
    days = [str(day) for day in run.window.days]
    with psycopg.connect(rig.up.dsn) as connection:
        (rows,) = connection.execute("select count(*) from numbered where day = any(%s)", [days]).fetchone()
        (applied,) = connection.execute("select count(*) from witness where day = any(%s)", [days]).fetchone()
    return int(rows + applied)


@pytest.mark.parametrize("job", ["rows", "rows-callback"])
def test_a_dry_run_reads_everything_and_writes_nothing(rig: Rig, job: str) -> None:
    run = rig.ended(rig.begin(Case(job=job, days=3), dryRun=True))
    assert RunStatus.SUCCEEDED is run.status
    assert run.window.partitions == rehearsed(rig, run)
    assert 0 == written(rig, run)
    assert {"read"} == modes(rig, run, "rehearse")
    assert [] == list(rig.up.ledger.partitions.all(run.run_id, Phase.APPLY))
    assert 0 == rig.up.ledger.runs.get(run.run_id).epoch  # it took no lock
    assert_nothing_is_left(rig.up, run.run_id)
    stored = rig.up.artifacts.store.get(report_key(run.run_id, "json"))
    report = Report.model_validate_json(stored)
    assert [(PartitionStatus.ACCEPTED, 3)] == [(line.status, line.partitions) for line in report.states]
    assert 3 * RECORDS == sum(line.records.read for line in report.states)


def test_a_sample_is_rehearsed_and_then_everything_is_applied(rig: Rig) -> None:
    run = rig.ended(rig.begin(Case(days=4), sample=2))
    assert_exact(rig, run)
    sample = rehearsed(rig, run)
    assert 2 == len(sample)
    assert set(sample) < set(run.window.partitions)
    assert ({"read"}, {"write"}) == (modes(rig, run, "rehearse"), modes(rig, run, "apply"))


def test_a_job_that_writes_when_it_rehearses_is_refused_by_its_role(rig: Rig) -> None:
    run = rig.ended(rig.begin(Case(params={"trespass": True}, days=2), sample=1))
    assert RunStatus.FAILED is run.status
    (item,) = rig.up.ledger.partitions.all(run.run_id, Phase.REHEARSE)
    assert item.error is not None
    assert "permission denied" in item.error.message
    assert 0 == written(rig, run)
    assert [] == list(rig.up.ledger.partitions.all(run.run_id, Phase.APPLY))
    assert_nothing_is_left(rig.up, run.run_id)
