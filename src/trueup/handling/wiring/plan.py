"""For `plan`."""

from __future__ import annotations

import os
from functools import cache, partial

from trueup.artifacts.s3 import connect_s3, list_sizes
from trueup.handling.plan import Planning
from trueup.handling.wiring.parts import artifacts, ecs, ledger
from trueup.handling.wiring.planning import jobs, starter, tasks
from trueup.naming import Naming


@cache
def planning() -> Planning:
    """The handler of `plan`."""
    listing = partial(list_sizes, connect_s3())
    naming = Naming(ledger(), artifacts())
    stack = os.environ["TRUEUP_STACK"]
    return Planning(ledger(), starter(), naming, ecs(), jobs(), stack, listing, tasks())
