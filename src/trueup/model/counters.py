"""The eight counters of a partition, and the two equations that bind them."""

from __future__ import annotations

from trueup.model.base import Count, Value


class Counters(Value):
    """Records of a partition. Absolute values, never differences.

    read = used + skipped + rejected, and produced = written + unchanged + refused.
    """

    read: Count = 0
    used: Count = 0
    skipped: Count = 0
    rejected: Count = 0
    produced: Count = 0
    written: Count = 0
    unchanged: Count = 0
    refused: Count = 0

    def plus(self, other: Counters) -> Counters:
        """The sum, counter by counter."""
        mine, theirs = self.__dict__, other.__dict__
        return Counters.model_construct(**{name: mine[name] + theirs[name] for name in COUNTERS})

    def minus(self, other: Counters) -> dict[str, int]:
        """The difference, counter by counter; it may be negative and so is not a Counters."""
        mine, theirs = self.__dict__, other.__dict__
        return {name: mine[name] - theirs[name] for name in COUNTERS}


COUNTERS: tuple[str, ...] = tuple(Counters.model_fields)
