"""Lines put in the order of their keys where a source has none: sorted runs on disk, then merged."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from trueup.compare.layout import Layout

__all__ = ["external_sort", "in_blocks", "without_unkeyed"]

RUN_BYTES = 4 * 2**20
_RUNS_AT_ONCE = 64
_BLOCK_BYTES = 128 * 1024


def external_sort(
    blocks: Iterable[bytes], layout: Layout, folder: Path | None = None, run_bytes: int = RUN_BYTES
) -> Generator[bytes, None, None]:
    """The lines of blocks in ascending order of their keys, as blocks; those without a key come first.

    Lines of one key keep their order. Memory is a few times `run_bytes`, whatever there is to sort; the rest
    is in temporary files under `folder`, which are gone when the iterator ends or is closed.
    """
    with tempfile.TemporaryDirectory(prefix="trueup-sort-", dir=folder) as place:
        sorter = _Sorter(layout, Path(place))
        for lines in _runs(blocks, run_bytes):
            sorter.add(lines)
        yield from in_blocks(sorter.merged())


def in_blocks(lines: Iterable[bytes], size: int = _BLOCK_BYTES) -> Iterator[bytes]:
    """Lines without their newlines as blocks of about so many bytes."""
    held: list[bytes] = []
    length = 0
    for line in lines:
        held.append(line)
        length += len(line) + 1
        if length >= size:
            yield b"\n".join(held) + b"\n"
            held, length = [], 0
    if held:
        yield b"\n".join(held) + b"\n"


def without_unkeyed(blocks: Iterable[bytes], layout: Layout, count: int) -> Iterator[bytes]:
    """The same blocks without their first so many lines whose keys cannot be read: they were told before."""
    blocks = iter(blocks)
    while count > 0 and (block := next(blocks, None)) is not None:
        kept = []
        for line in block.removesuffix(b"\n").split(b"\n"):
            if count > 0 and not _has_key(layout, line):
                count -= 1
            else:
                kept.append(line)
        yield from in_blocks(kept)
    yield from blocks


def _has_key(layout: Layout, line: bytes) -> bool:
    try:
        layout.order_of(line)
    except ValueError:
        return False
    return True


def _runs(blocks: Iterable[bytes], run_bytes: int) -> Iterator[list[bytes]]:
    held: list[bytes] = []
    length = 0
    for block in blocks:
        held += block.removesuffix(b"\n").split(b"\n") if block else []
        length += len(block)
        if length >= run_bytes:
            yield held
            held, length = [], 0
    if held:
        yield held


class _Sorter:
    def __init__(self, layout: Layout, place: Path) -> None:
        self._layout = layout
        self._order_of = layout.order_of
        self._place = place
        self._number = 0
        self._runs: list[Path] = []
        self._unkeyed: list[Path] = []

    def add(self, lines: list[bytes]) -> None:
        """Sort some lines and put them on disk."""
        try:
            lines.sort(key=self._order_of)
        except ValueError:
            unkeyed = [line for line in lines if not _has_key(self._layout, line)]
            self._unkeyed.append(self._write(in_blocks(unkeyed)))
            lines = sorted((line for line in lines if _has_key(self._layout, line)), key=self._order_of)
        self._runs.append(self._write(in_blocks(lines)))
        if len(self._runs) >= 2 * _RUNS_AT_ONCE:
            # The oldest ones together, in front: lines of one key keep their order.
            oldest, self._runs = self._runs[:_RUNS_AT_ONCE], self._runs[_RUNS_AT_ONCE:]
            self._runs.insert(0, self._write(in_blocks(self._merged(oldest))))
            for path in oldest:
                path.unlink()

    def merged(self) -> Iterator[bytes]:
        """All lines."""
        for path in self._unkeyed:
            with path.open("rb") as file:
                yield from _lines(file)
        yield from self._merged(self._runs)

    def _merged(self, runs: list[Path]) -> Iterator[bytes]:
        files = [path.open("rb") for path in runs]
        try:
            yield from heapq.merge(*map(_lines, files), key=self._order_of)
        finally:
            for file in files:
                file.close()

    def _write(self, blocks: Iterable[bytes]) -> Path:
        path = self._place / str(self._number)
        self._number += 1
        with path.open("wb") as file:
            file.writelines(blocks)
        return path


def _lines(file: BinaryIO) -> Iterator[bytes]:
    return (line[:-1] for line in file)
