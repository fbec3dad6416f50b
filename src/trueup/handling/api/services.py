"""What the routes work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trueup.handling.start import Starting
from trueup.ledger import Ledger
from trueup.model.jobs import AnyJob
from trueup.platform import Logs
from trueup.reporting import Reports
from trueup.watching import Lists, Watch


@dataclass(frozen=True, slots=True)
class Services:
    """The ledger, what looks at it, and what starts runs."""

    ledger: Ledger
    watch: Watch
    lists: Lists
    reports: Reports
    logs: Logs
    starting: Starting
    jobs: Mapping[str, AnyJob]
