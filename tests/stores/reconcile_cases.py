"""What the tests of real sources share."""

from __future__ import annotations

from typing import Any

from trueup.compare import Finding, Source, Summary, examine
from trueup.model.reconcile_job import Reconciliation

COLUMNS: dict[str, Any] = {"id": "integer", "status": "text", "amount": "decimal"}


def job(columns: dict[str, Any] | None = None, **more: Any) -> Reconciliation:
    table = {"kind": "postgres", "table": "t"}
    base = {"name": "cases", "kind": "reconcile", "truth": table, "target": table, "key": ["id"]}
    return Reconciliation.of({**base, "columns": columns or COLUMNS, **more})


def look(of: Reconciliation, truth: Source, target: Source) -> tuple[Summary, list[Finding]]:
    findings: list[Finding] = []
    return examine(of, truth, target, findings.append), findings
