"""What a table and a ledger must do: `TableSuite` and `LedgerSuite`, each over the fixture `table`."""

from __future__ import annotations

from trueup.testing.suites.asking import AskingSuite
from trueup.testing.suites.gates import GateSuite
from trueup.testing.suites.history import HistorySuite, KnownSuite
from trueup.testing.suites.locks import LockSuite, RateSuite
from trueup.testing.suites.lost_answers import LostAnswerSuite
from trueup.testing.suites.partitions import PartitionSuite
from trueup.testing.suites.runs import RunSuite, TaskSuite
from trueup.testing.suites.support import LossyTable
from trueup.testing.suites.table import TableSuite
from trueup.testing.suites.trail import TrailSuite
from trueup.testing.suites.verdicts import LargeSuite, VerdictSuite

__all__ = ["LargeLedgerSuite", "LedgerSuite", "LossyTable", "TableSuite"]


class LedgerSuite(
    RunSuite,
    AskingSuite,
    TaskSuite,
    TrailSuite,
    PartitionSuite,
    VerdictSuite,
    GateSuite,
    LockSuite,
    RateSuite,
    HistorySuite,
    KnownSuite,
    LostAnswerSuite,
):
    """How a ledger behaves over a table; needs the fixture `table`."""


class LargeLedgerSuite(LargeSuite):
    """What a ledger does with hundreds of partitions at once; needs the fixture `table`."""
