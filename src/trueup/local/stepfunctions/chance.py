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
        """A whole number from start up to, not including, end (States.MathRandom)."""
        source = self._random if seed is None else random.Random(seed)
        return source.randrange(start, end)

    def letters(self, size: int) -> str:
        """Base64 text of that many random bytes."""
        return base64.b64encode(self._random.randbytes(size)).decode()
