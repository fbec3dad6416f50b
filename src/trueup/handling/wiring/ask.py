"""For `ask`."""

from __future__ import annotations

import os
from functools import cache

from trueup.aws import connect
from trueup.aws.people import Topic
from trueup.handling.ask import Asking
from trueup.handling.wiring.gates import waiting
from trueup.handling.wiring.parts import ledger


@cache
def asking() -> Asking:
    """The handler of `ask`."""
    return Asking(ledger(), waiting(), Topic(connect("sns"), os.environ["TRUEUP_TOPIC"]))
