"""From a request to a plan to a dispatch: pure functions, without a clock, a network or a file."""

from __future__ import annotations

from trueup.planning.dispatch import dispatch_partitions_key, make_dispatch, read_slice
from trueup.planning.lines import read_partitions, write_partitions
from trueup.planning.packing import in_order, pack
from trueup.planning.params import check_params, read_param
from trueup.planning.partitions import each_named, partitions
from trueup.planning.plan import limited, make_plan, plan_partitions_key
from trueup.planning.verification import handed_on
from trueup.planning.weights import UNKNOWN_PACE, Pace
from trueup.planning.windows import in_utf8, window

__all__ = [
    "UNKNOWN_PACE",
    "Pace",
    "check_params",
    "dispatch_partitions_key",
    "each_named",
    "handed_on",
    "in_order",
    "in_utf8",
    "limited",
    "make_dispatch",
    "make_plan",
    "pack",
    "partitions",
    "plan_partitions_key",
    "read_param",
    "read_partitions",
    "read_slice",
    "window",
    "write_partitions",
]
