"""Reports to look at: `python samples/reports/make.py` runs two backfills and two reconciliations.

The first backfill went well. The other met bad records, a broken day, a busy target and a machine that kills
tasks. The first reconciliation found nothing. The other found drift, of which all was approved, and most
repaired: meanwhile somebody changed two of the rows.
"""

import logging
import random
import sys
from pathlib import Path
from zlib import crc32

from trueup import Backfill, Batch, Outcome, Reconcile, Reject, Skip, Throttled
from trueup.artifacts.store import MemoryStore
from trueup.model.job import JobFile
from trueup.model.reconcile_job import Reconciliation
from trueup.model.states import Phase
from trueup.reporting import Reports, comparison_page, page
from trueup.testing import LocalRun, ManualClock

HERE = Path(__file__).parent
JOB = {
    "name": "flights-delays",
    "class": "make:Delays",
    "partitions": {"by": "date", "unit": "day", "timezone": "America/New_York"},
    "target": {"name": "dynamodb:delays", "guard": "key"},
    "limits": {"max_concurrency": 6},
    "errors": {"rejects": 3},
}


def delays(clock, *, trouble):
    """The job: a day's flights in batches of 20, a second and a half each; `trouble` is what can go wrong."""
    rng = random.Random(7)

    class Delays(Backfill):
        def read(self, part, after):
            flights = 60 + crc32(part.id.encode()) % 80
            for low in range(int(after[3:]) if after else 0, flights, 20):
                high = min(low + 20, flights)
                yield Batch([(part.label, number) for number in range(low, high)], f"v1:{high}")

        def transform(self, flight):
            day, number = flight
            chance = crc32(f"{day}/{number}".encode()) % 1000
            if chance < 25:
                return Skip("cancelled")
            if trouble and day == "2013-02-09":
                raise ValueError("the file of this day has another header")
            if trouble and chance > 993 - 80 * (day == "2013-02-10"):
                return Reject("no carrier" if chance % 2 else "departed before it was scheduled")
            return flight

        def write(self, rows, ctx):
            clock.pass_(1.5)
            if trouble and rng.random() < 0.05:
                raise Throttled("the table is busy", retry_after=2.0)
            return Outcome(written=len(rows))

    return Delays


def run(*, trouble):
    """A quarter of a year, run to its end; where there is trouble, all tasks are killed now and then."""
    clock = ManualClock()
    job = delays(clock, trouble=trouble)
    made = LocalRun(
        job,
        JobFile.model_validate(JOB),
        start="2013-01-01",
        end="2013-04-01",
        concurrency=6,
        clock=clock,
        seed=3,
    )
    steps = 0
    while made.step() is not None:
        steps += 1
        if steps % 40 == 0:
            clock.pass_(0.7)
        if trouble and steps in (150, 420):
            made.kill()
    return made


def report(*, trouble):
    """The report of such a run."""
    made = run(trouble=trouble)
    found = Reports(made.ledger, made.artifacts).of(made.run_id)
    assert found is not None
    return found


CASES = {
    "name": "cases-in-dynamodb",
    "kind": "reconcile",
    "truth": {"kind": "postgres", "table": "public.case_status"},
    "target": {"kind": "dynamodb", "table": "portal-cases"},
    "key": ["case_id"],
    "columns": {"case_id": "integer", "status": "text", "paid": "decimal"},
    "lag": 120,
    "partitions": {"by": "splits", "splits": [1000, 2000]},
    "repair": {"deletes": "asked"},
}


def cases():
    """Both sides, the same: 3,000 cases with what became of them."""
    rng = random.Random(11)
    states = ("open", "waiting", "closed")
    rows = [
        {"case_id": number, "status": rng.choice(states), "paid": f"{rng.randrange(90_000) / 100:.2f}"}
        for number in range(3000)
    ]
    return {"truth": rows, "target": [dict(row) for row in rows]}


def damage(target):
    """25 cases are wrong, missing or too many in the target."""
    for number in range(100, 1300, 100):
        target[number]["status"] = "unknown"
    del target[2500:2508]
    target += [{"case_id": 90_000 + number, "status": "open", "paid": "0.00"} for number in range(5)]


def reconciled(*, drift):
    """A reconciliation to its end; where there is drift, with a repair that meets two rows that changed."""
    both = cases()
    if drift:
        damage(both["target"])
    approver = "arn:aws:iam::123456789012:user/bob"
    store = MemoryStore("trueup-example")
    made = LocalRun(Reconcile, Reconciliation.of(CASES), rows=both, approver=approver, store=store, seed=3)
    while drift and made.phase is not Phase.REPAIR:
        assert made.step() is not None
    if drift:
        both["truth"][100]["status"] = "reopened"
        both["target"][200]["status"] = "corrected by hand"
    made.run()
    reports = Reports(made.ledger, made.artifacts)
    reports.leave(made.run_id)
    return reports.reconciled(made.run_id)


def main(folder=HERE):
    """Write all as JSON and as pages."""
    for name, trouble in (("went-well", False), ("went-badly", True)):
        found = report(trouble=trouble)
        text = found.model_dump_json(by_alias=True, indent=1) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
        (folder / f"{name}.html").write_text(page(found), encoding="utf-8")
    for name, drift in (("reconciled-clean", False), ("reconciled-drift", True)):
        found = reconciled(drift=drift)
        text = found.model_dump_json(by_alias=True, indent=1) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
        (folder / f"{name}.html").write_text(comparison_page(found), encoding="utf-8")


if __name__ == "__main__":
    logging.disable()  # the broken day is meant
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
