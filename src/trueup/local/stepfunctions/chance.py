"""Whatever is left to chance: jitter, random numbers, ids. One object, so that a seed repeats a run."""

from __future__ import annotations

import base64
import random
import uuid


class Chance:
    """Random numbers and ids. With a seed the same ones come again, in the same order."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> str:
        """A version 4 UUID."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def upto(self, seconds: float) -> float:
        """A wait between none and all of that many seconds (JitterStrategy FULL)."""
        return self._random.uniform(0, seconds)

    def between(self, start: int, end: int, seed: int | None = None) -> int:
        """A whole number from start up to, not including, end (States.MathRandom).

        Which generator AWS seeds is not documented; ours is Java's, as far as its numbers go.
        """
        if seed is not None and end - start < 2**31:
            return start + _java_number(seed, end - start)
        source = self._random if seed is None else random.Random(seed)
        return source.randrange(start, end)

    def letters(self, size: int) -> str:
        """Base64 text of that many random bytes."""
        return base64.b64encode(self._random.randbytes(size)).decode()


def _java_number(seed: int, bound: int) -> int:
    """What `new java.util.Random(seed).nextInt(bound)` gives."""
    state = (seed ^ 0x5DEECE66D) % 2**48
    while True:
        state = (state * 0x5DEECE66D + 0xB) % 2**48
        bits = state >> 17
        if bound & -bound == bound:
            return bound * bits >> 31
        # Numbers above the last whole multiple of the bound would favour the small ones.
        if bits - bits % bound + bound <= 2**31:
            return bits % bound
