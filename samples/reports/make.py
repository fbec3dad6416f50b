"""Two reports to look at: `python samples/reports/make.py` runs two runs and writes them here.

The one went well. The other met bad records, a broken day, a busy target and a machine that kills tasks.
"""

import logging
import random
import sys
from pathlib import Path
from zlib import crc32

from trueup import Backfill, Batch, Outcome, Reject, Skip, Throttled
from trueup.model.job import JobFile
from trueup.reporting import Reports, page
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


def main(folder=HERE):
    """Write both as JSON and as pages."""
    for name, trouble in (("went-well", False), ("went-badly", True)):
        found = report(trouble=trouble)
        text = found.model_dump_json(by_alias=True, indent=1) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
        (folder / f"{name}.html").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    logging.disable()  # the broken day is meant
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
