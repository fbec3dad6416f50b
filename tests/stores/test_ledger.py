"""The ledger does what it promises on every table."""

from __future__ import annotations

import pytest

from trueup.testing.suites.ledger import LargeLedgerSuite, LedgerSuite, TableSuite


class TestTable(TableSuite):
    """Tables in memory, on moto and on MiniStack."""


class TestLedger(LedgerSuite):
    """The ledger on each of them."""


# Not on moto: it parses each of hundreds of conditions for 20 ms. TestTable has it take a full transaction.
@pytest.mark.parametrize("table", ["memory", "ministack"], indirect=True)
class TestLargeLedger(LargeLedgerSuite):
    """Hundreds of partitions at once."""
