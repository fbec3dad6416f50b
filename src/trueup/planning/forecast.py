"""What a plan will take: its first dispatch, estimated."""

from __future__ import annotations

from collections.abc import Sequence

from trueup.model.estimate import Estimate
from trueup.model.plan import Partition, Plan
from trueup.model.states import Phase
from trueup.planning.dispatch import make_dispatch
from trueup.planning.estimate import estimate
from trueup.planning.packing import in_order


def forecast(plan: Plan, partitions: Sequence[Partition]) -> Estimate:
    """The estimate of a plan; `partitions` come in the order of their keys."""
    phase = Phase.REHEARSE if plan.dry_run else Phase.COMPARE if plan.job.kind == "reconcile" else Phase.APPLY
    ordered = in_order(partitions, plan.job.order)
    dispatch, _, _ = make_dispatch(plan, ordered, phase=phase, number=1)
    return estimate(plan.job, partitions, dispatch.slices, dry_run=plan.dry_run)
