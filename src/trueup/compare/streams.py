"""One side of a merge: lines in the order of their keys, seen through blocks of bytes."""

from __future__ import annotations

from collections.abc import Iterable

from trueup.compare.layout import Layout, Order

__all__ = ["Lines", "common_prefix"]

_FIRST_STRIDE = 512


class Lines:
    """The lines of blocks, each of which ends with a newline; one at a time, the head.

    `line` is None at the end. `order` is the head's key, None where it cannot be read. `block` and `start`
    are where the head stands, so that a stretch of lines can be compared, and passed, as bytes.
    `unsorted` becomes true, and the lines end, where a key is lower than the one before.
    """

    def __init__(self, blocks: Iterable[bytes], layout: Layout) -> None:
        self._blocks = iter(blocks)
        self._order_of = layout.order_of
        self._last: Order | None = None
        self._end = -1
        self.block = b""
        self.start = 0
        self.line: bytes | None = None
        self.order: Order | None = None
        self.rows = 0
        self.unsorted = False
        self._see(0)

    @property
    def again(self) -> bool:
        """Whether the head has the key of the line before it."""
        return self.order is not None and self.order == self._last

    def advance(self) -> None:
        """Go on to the next line."""
        self.rows += 1
        if self.order is not None:
            self._last = self.order
        self._see(self._end + 1)
        if self.order is not None and self._last is not None and self.order < self._last:
            self.unsorted = True

    def take(self) -> int:
        """Go on to the next key. Returns how many lines had this one."""
        order, count = self.order, 1
        self.advance()
        while self.order == order and self.line is not None:
            count += 1
            self.advance()
        return count

    def jump(self, length: int, rows: int) -> None:
        """Pass so many bytes from the head on, which are so many whole lines that are known to ascend."""
        self.rows += rows
        self._see(self.start + length)

    def _see(self, start: int) -> None:
        while start >= len(self.block):
            block = next(self._blocks, None)
            if block is None:
                self.block, self.start, self.line, self.order = b"", 0, None, None
                return
            self.block, start = block, 0
        end = self.block.index(b"\n", start)
        self.start, self._end, self.line = start, end, self.block[start:end]
        try:
            self.order = self._order_of(self.line)
        except ValueError:
            self.order = None


def common_prefix(one: bytes, start: int, other: bytes, other_start: int) -> int:
    """How many bytes are the same, from two places on: a comparison of memory, in strides that double."""
    most = min(len(one) - start, len(other) - other_start)
    same, stride = 0, _FIRST_STRIDE
    while same < most:
        upto = min(same + stride, most)
        if not one.startswith(other[other_start + same : other_start + upto], start + same):
            return _bisected(one, start, other, other_start, same, upto)
        same, stride = upto, stride * 2
    return most


def _bisected(one: bytes, start: int, other: bytes, other_start: int, same: int, differs: int) -> int:
    """The same, where `same` bytes are equal and `differs` are not."""
    while differs - same > 1:
        middle = (same + differs) // 2
        if one.startswith(other[other_start + same : other_start + middle], start + same):
            same = middle
        else:
            differs = middle
    return same
