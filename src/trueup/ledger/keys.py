"""Where things are in the one table (design, section 6)."""

from __future__ import annotations

import zlib
from datetime import datetime

from trueup.ledger.table import Key
from trueup.model.states import Phase

SHARDS = 8
UNSETTLED = "UNSETTLED"
RUNS = "RUNS"
GATES = "GATES"

_MILLISECONDS = 10**13


def shard(text: str) -> int:
    """Which of the shards: the same everywhere and for ever, so Python's own hash will not do."""
    return zlib.crc32(text.encode()) % SHARDS


def run(run_id: str) -> Key:
    """The run."""
    return f"RUN#{run_id}", "RUN"


def count(run_id: str, number: int) -> Key:
    """One of the counter items of a run."""
    return f"RUN#{run_id}", f"COUNT#{number}"


def row(run_id: str) -> Key:
    """How many partitions of a run failed in a row."""
    return f"RUN#{run_id}", "ROW"


def task(run_id: str, phase: Phase, slice_id: int, launch: int) -> Key:
    """A task, from registering until it is proved stopped."""
    return f"RUN#{run_id}", f"TASK#{phase.value}#{slice_id:06d}#{launch:08d}"


def audit(run_id: str, at: datetime, unique: str) -> Key:
    """One verb of the trail."""
    return f"RUN#{run_id}", f"AUDIT#{at:%Y-%m-%dT%H:%M:%S.%fZ}#{unique}"


def gate(run_id: str, name: str) -> Key:
    """A point where a run waits for a person."""
    return f"RUN#{run_id}", f"GATE#{name}"


def waiting(run_id: str, name: str) -> Key:
    """A gate's place on the list of those that nobody decided yet."""
    return GATES, f"ID#{run_id}#{name}"


def rate(run_id: str) -> Key:
    """The window from which tasks reserve their share of the run's rate."""
    return f"RUN#{run_id}", "RATE"


def partition(run_id: str, phase: Phase, partition_id: str) -> Key:
    """A partition's checkpoint; sharded, since one partition key takes 1,000 writes a second."""
    return f"RUN#{run_id}#{phase.value}#{shard(partition_id)}", f"PART#{partition_id}"


def partition_shards(run_id: str, phase: Phase) -> list[str]:
    """The partition keys under which all checkpoints of a phase lie."""
    return [f"RUN#{run_id}#{phase.value}#{number}" for number in range(SHARDS)]


def lock(target: str) -> Key:
    """The lock of a target."""
    return f"LOCK#{target}", "LOCK"


def history(job: str, scope: str) -> Key:
    """Which runs of a reconciliation came last, for what its findings are about."""
    return f"HISTORY#{job}", f"SCOPE#{scope}"


def known(job: str, known_id: str) -> Key:
    """A person's word that differences of a job are known."""
    return f"KNOWN#{job}", f"ID#{known_id}"


def request(request_id: str) -> Key:
    """The run that a request started. The id alone decides, so there is no time in it."""
    return f"REQUEST#{request_id}", "AT#"


def schedule(name: str, at: str) -> Key:
    """The run that a schedule started for one scheduled time."""
    return f"SCHEDULE#{name}", f"AT#{at}"


def unsettled(run_id: str) -> Key:
    """A run's place on the list of those that the sweep looks after."""
    return UNSETTLED, f"ID#{run_id}"


def listed(run_id: str, created_at: datetime) -> Key:
    """A run's place on the list of all runs, whose order is the newest first."""
    return RUNS, f"AT#{_MILLISECONDS - round(created_at.timestamp() * 1000):013d}#{run_id}"


def ended(run_id: str, launch: int) -> Key:
    """The mark that a launch's end is on the trail, so that it is told once."""
    return f"RUN#{run_id}", f"ENDED#{launch:08d}"


def downloaded(run_id: str, digest: str, person: str) -> Key:
    """The mark that it is on the trail that somebody read the evidence of that hash."""
    return f"RUN#{run_id}", f"READ#{digest}#{person}"
