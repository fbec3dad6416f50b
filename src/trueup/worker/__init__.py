"""What runs inside the container."""

from trueup.exits import Exit
from trueup.worker.loop import Worker
from trueup.worker.partition import Step
from trueup.worker.stopping import Control
from trueup.worker.tools import Identity, Tools

__all__ = ["Control", "Exit", "Identity", "Step", "Tools", "Worker"]
