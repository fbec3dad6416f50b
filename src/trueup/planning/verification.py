"""What a backfill hands on to the reconciliation that verifies it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueup.model.plan import Window
from trueup.model.reconcile_job import Reconciliation
from trueup.model.verification import ENDS, Verify


def handed_on(
    verify: Verify, by: Reconciliation, params: Mapping[str, Any], covered: Window
) -> dict[str, Any]:
    """The reconciliation's parameters: those that both jobs have, and those that `verify` says.

    One whose placeholder says nothing in this run (a list of keys has no ends) is left out.
    """
    declared = by.parameters.get("properties", {})
    same = {name: value for name, value in params.items() if name in declared}
    ends = {name: end for name, end in zip(ENDS, (covered.low, covered.high), strict=True) if end is not None}
    return {**same, **verify.filled({**params, **ends})}
