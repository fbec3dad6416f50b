"""Many rows of one key folded into one: what an event ledger says of a status, what a group adds up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

from trueup.compare.canonical import Missing, number_text, reader
from trueup.compare.layout import Layout, order
from trueup.compare.lines import ABSENT, NULL, UNREADABLE, unescape, unreadable
from trueup.compare.sorting import in_blocks
from trueup.compare.values import EXACT
from trueup.errors import SourceError
from trueup.model.reconcile import ColumnType, Figure, Side

__all__ = ["Fold", "FoldHook", "row_document"]

FoldHook = Callable[[list[dict[str, Any]]], Mapping[str, Any]]
"""The events of one key, in order, to the values of the result."""


@dataclass(frozen=True)
class Fold:
    """How rows become one: those that begin with the key of `result` are one, its values are the figures.

    `rows` is the layout of what is folded. Where its key is longer than that of the result, the rest of it
    orders the rows of one result, and must be there once. `by` is the job's own code instead of the figures.
    """

    rows: Layout
    result: Layout
    figures: Mapping[str, Figure]
    by: FoldHook | None = None

    def blocks(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The results, as blocks; the input ascends by its keys, and SourceError says where it does not.

        Lines without a key are handed on. A figure is unreadable where a value that it needs is, or where
        two rows have the same place in the order.
        """
        return in_blocks(self._results(_lines(blocks)))

    def line(self, rows: Iterable[bytes]) -> bytes | None:
        """The result of the rows of one key, None where there is no row."""
        return next(self._results(iter(rows)), None)

    def _results(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        width = len(self.result.key)
        folded = _by_hook(self.by, self) if self.by else _by_figures(self)
        for key, rows in groupby(self._checked(lines), key=lambda row: row.fields[:width]):
            if key[0][:2] == UNREADABLE:
                yield from (row.fields[0] for row in rows)
            else:
                yield b"\t".join([*key, *folded(rows)])

    def _checked(self, lines: Iterator[bytes]) -> Iterator[_Row]:
        distinct = len(self.rows.key) > len(self.result.key)
        last: Any = None
        for line in lines:
            try:
                order = self.rows.order_of(line)
            except ValueError:
                yield _Row([unreadable(self.rows.why_unkeyed(line))], False)
                continue
            if last is not None and order < last:
                raise SourceError(
                    f"Rows are not in the order of keys: {', '.join(self.rows.key_of(line))} comes late.",
                    remedy="Leave `ordered` out of the source, so that it is sorted.",
                )
            yield _Row(line.split(b"\t"), distinct and order == last)
            last = order


@dataclass(slots=True)
class _Row:
    """The fields of a row, and whether its place in the order is that of the row before."""

    fields: list[bytes]
    twice: bool


Folded = Callable[[Iterable[_Row]], list[bytes]]


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for block in blocks:
        yield from block.removesuffix(b"\n").split(b"\n")


@dataclass(frozen=True, slots=True)
class _Operation:
    """One figure: `step` takes what it is so far (None at first) and a field, `end` makes the field of it."""

    at: int
    step: Callable[[Any, bytes], Any]
    end: Callable[[Any], bytes]


def _by_figures(fold: Fold) -> Folded:
    operations = [_operation(fold.figures[column.name], fold.rows) for column in fold.result.values]
    return lambda rows: _folded(operations, rows)


def _by_hook(hook: FoldHook, fold: Fold) -> Folded:
    """The job's own fold. Rows that cannot be read never get there, and its errors are the key's."""
    readers = [(column.name, reader(column, Side.TRUTH)) for column in fold.result.values]

    def folded(rows: Iterable[_Row]) -> list[bytes]:
        events = []
        for row in rows:
            wrong = next((field for field in row.fields if field[:2] == UNREADABLE), None)
            if row.twice:
                wrong = unreadable("two rows have the same place in the order")
            if wrong is not None:
                return [wrong] * len(readers)
            events.append(row_document(fold.rows, row.fields))
        try:
            made = hook(events)
            return [read(made.get(name, Missing)) for name, read in readers]
        except Exception as error:  # whatever the job's code raises, this key alone cannot be compared
            return [unreadable(f"fold failed with {type(error).__name__}: {error}")] * len(readers)

    return folded


def row_document(layout: Layout, fields: Sequence[bytes]) -> dict[str, Any]:
    """A row as the job's own code gets it."""
    event: dict[str, Any] = {}
    for column, field in zip(layout.columns, fields, strict=True):
        if field == NULL:
            event[column.name] = None
        elif field != ABSENT:
            text = unescape(field).decode("utf-8", "surrogateescape")
            event[column.name] = _NUMBERS.get(column.type, str)(text)
    return event


_NUMBERS: Mapping[ColumnType, Callable[[str], Any]] = {
    ColumnType.INTEGER: int,
    ColumnType.DECIMAL: Decimal,
    ColumnType.FLOAT: Decimal,
}


def _folded(operations: Sequence[_Operation], rows: Iterable[_Row]) -> list[bytes]:
    sofar: list[Any] = [None] * len(operations)
    broken: list[bytes | None] = [None] * len(operations)
    for row in rows:
        for index, one in enumerate(operations):
            field = row.fields[one.at] if one.at >= 0 else b""
            if row.twice:
                broken[index] = unreadable("two rows have the same place in the order")
            elif field[:2] == UNREADABLE:
                broken[index] = field
            elif broken[index] is None:
                sofar[index] = one.step(sofar[index], field)
    return [
        bad if bad is not None else one.end(value)
        for one, value, bad in zip(operations, sofar, broken, strict=True)
    ]


def _operation(figure: Figure, rows: Layout) -> _Operation:
    if figure.of is None:
        return _Operation(-1, lambda sofar, _: (sofar or 0) + 1, lambda count: b"%d" % count)
    at = rows.names.index(figure.of)
    kind = rows.columns[at].type
    if figure.op == "sum":
        return _Operation(at, _add, lambda total: NULL if total is None else number_text(total))
    if figure.op in ("first", "last"):
        return _Operation(
            at, _first if figure.op == "first" else _last, lambda field: NULL if field is None else field
        )
    return _Operation(at, _extreme(figure.op, kind), lambda found: NULL if found is None else found[1])


def _add(total: Decimal | None, field: bytes) -> Decimal | None:
    if field in (NULL, ABSENT):
        return total
    value = Decimal(field.decode())
    return value if total is None else EXACT.add(total, value)


def _first(kept: bytes | None, field: bytes) -> bytes | None:
    return field if kept is None and field != ABSENT else kept


def _last(kept: bytes | None, field: bytes) -> bytes | None:
    return kept if field == ABSENT else field


def _extreme(op: str, kind: ColumnType) -> Callable[[Any, bytes], Any]:
    order_of = order(kind)

    def step(kept: Any, field: bytes) -> Any:
        if field in (NULL, ABSENT):
            return kept
        value = (order_of(field), field)
        if kept is None:
            return value
        return min(kept, value) if op == "min" else max(kept, value)

    return step
