"""For `api`."""

from __future__ import annotations

import os
from functools import cache

from trueup.aws import connect
from trueup.aws.logs import TaskLogs
from trueup.clock import SystemClock
from trueup.handling.api import Api, Services
from trueup.handling.wiring.closing import reports
from trueup.handling.wiring.gates import gating
from trueup.handling.wiring.parts import artifacts, ledger, metrics
from trueup.handling.wiring.planning import jobs
from trueup.handling.wiring.start import starting
from trueup.knowing import Knowing
from trueup.watching import GateViews, Lists, Watch


@cache
def api() -> Api:
    """The handler of `api`."""
    watch = Watch(ledger(), artifacts(), SystemClock())
    lists = Lists(ledger(), artifacts())
    gates = GateViews(ledger(), artifacts())
    logs = TaskLogs(connect("logs"), os.environ["TRUEUP_TASK_LOG"])
    knowing = Knowing(ledger(), artifacts(), SystemClock())
    seen = (ledger(), watch, lists, reports(), logs)
    return Api(Services(*seen, starting(), gates, gating(), jobs(), knowing, metrics()))
