"""The run's rate, shared: tasks reserve records from a window item before they work them."""

from __future__ import annotations

import math

from trueup.ledger import keys
from trueup.ledger.table import Clause, ConditionFailed, Table, Write

WINDOW_SECONDS = 5.0


class Rates:
    """One item per run: which window it is, and how many records of it are reserved."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def reserve(self, run_id: str, records: int, per_second: float, now: float) -> float:
        """Reserve records from the current window, and say how many seconds to wait before working them.

        `now` is seconds since the epoch. 0.0 means reserved: go on. More means that nothing was reserved and
        the window is full: wait that long and ask again. A reservation larger than a window is let through
        when the window is untouched, or it would wait for ever.
        """
        window = math.floor(now / WINDOW_SECONDS)
        room = per_second * WINDOW_SECONDS
        if self._join(run_id, records, window, room) or self._begin(run_id, records, window):
            return 0.0
        return (window + 1) * WINDOW_SECONDS - now

    def _join(self, run_id: str, records: int, window: int, room: float) -> bool:
        clauses = (
            Clause("the window is the current one", "window", "=", window),
            Clause("there is room in it", "reserved", "<=", max(0.0, room - records)),
        )
        return self._try(Write(keys.rate(run_id), adds={"reserved": records}, clauses=clauses))

    def _begin(self, run_id: str, records: int, window: int) -> bool:
        clause = Clause("the window is a new one", "window", "<", window, or_absent=True)
        return self._try(
            Write(keys.rate(run_id), sets={"window": window, "reserved": records}, clauses=(clause,))
        )

    def _try(self, write: Write) -> bool:
        try:
            self._table.write(write)
        except ConditionFailed:
            return False
        return True
