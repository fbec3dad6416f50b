"""For tests of jobs and of adapters: a run in one process, and what must hold."""

from trueup.testing.checks import check_backfill, check_reading
from trueup.testing.clocks import ManualClock
from trueup.testing.local_run import CODE, LocalRun
from trueup.testing.local_tasks import LocalPlatform, LocalTask

__all__ = ["CODE", "LocalPlatform", "LocalRun", "LocalTask", "ManualClock", "check_backfill", "check_reading"]
