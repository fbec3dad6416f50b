"""What is shown of runs: read from the ledger and S3, changing nothing.

How a run stands costs a handful of items and two for each running task, whatever the number of partitions.
"""

from __future__ import annotations

from trueup.watching.gates import GateViews
from trueup.watching.lists import Lists
from trueup.watching.status import Watch

__all__ = ["GateViews", "Lists", "Watch"]
