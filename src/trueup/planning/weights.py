"""How much work a partition is, in seconds of one task's time.

What is known best counts first: records counted by the job's `count` hook times seconds a record from the
job's history; bytes of an object times seconds a byte; the mean of the history; `partitions.seconds` of the
job file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_WEIGHT = 1e9
_LEAST = 0.001


@dataclass(frozen=True)
class Pace:
    """How fast a job works. The defaults are for a job without a history.

    `records` maps a partition's id to what `count` said; `per_partition` is None where there is no history.
    All times are in seconds. Without a history, 5 MB and 1,000 records a second.
    """

    per_record: float = 0.001
    per_byte: float = 1 / 5_000_000
    per_partition: float | None = None
    records: Mapping[str, int] = field(default_factory=dict)

    def weight(self, partition_id: str, spec: float, *, size: int | None = None, share: float = 1.0) -> float:
        """Seconds of work in a partition, to the millisecond and at least one.

        `spec` is the job file's figure for a whole partition, `size` its bytes, `share` which part of a whole
        partition this one is.
        """
        if partition_id in self.records:
            seconds = self.records[partition_id] * self.per_record
        elif size is not None:
            seconds = size * self.per_byte
        else:
            seconds = share * (spec if self.per_partition is None else self.per_partition)
        return round(min(max(seconds, _LEAST), MOST_WEIGHT), 3)


UNKNOWN_PACE = Pace()
