"""What the routes work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trueup.gating import Gating
from trueup.handling.start import Starting
from trueup.knowing import Knowing
from trueup.ledger import Ledger
from trueup.metrics import UNMEASURED, Metrics
from trueup.model.jobs import AnyJob
from trueup.platform import Logs
from trueup.reporting import Reports
from trueup.watching import GateViews, Lists, Watch


@dataclass(frozen=True, slots=True)
class Services:
    """The ledger, what looks at it, what starts runs, what brings them through gates, and what is known."""

    ledger: Ledger
    watch: Watch
    lists: Lists
    reports: Reports
    logs: Logs
    starting: Starting
    gates: GateViews
    gating: Gating
    jobs: Mapping[str, AnyJob]
    knowing: Knowing
    metrics: Metrics = UNMEASURED
