"""From a definition's JSON to a Machine, or to every reason why it cannot be run."""

from trueup.local.stepfunctions.parsing.machine import parse_definition

__all__ = ["parse_definition"]
