"""Which run of a reconciliation came last: what it confirmed says how old a finding is."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from trueup.ledger import keys
from trueup.ledger.table import Clause, ConditionFailed, Table, Write


class History:
    """One item for each job and scope (`trueup.model.history.scope_of`). A later run is never put back."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def note(self, job: str, scope: str, run_id: str, at: datetime, *, whole: bool) -> None:
        """Remember a run that was asked for at an instant; `whole`: it compared everything."""
        for name in ("newest", "whole") if whole else ("newest",):
            time = f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"
            newer = Clause("no later run is on record", f"{name}At", "<", time, or_absent=True)
            sets = {name: run_id, f"{name}At": time}
            with suppress(ConditionFailed):
                self._table.write(Write(keys.history(job, scope), sets=sets, clauses=(newer,)))

    def of(self, job: str, scope: str) -> list[str]:
        """The newest run, and the newest that compared everything, where that is another one."""
        item = self._table.get(keys.history(job, scope)) or {}
        return list(dict.fromkeys(item[name] for name in ("newest", "whole") if name in item))
