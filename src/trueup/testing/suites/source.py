"""What a source of a reconciliation must do: `SourceSuite`, over the fixture `world`."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from trueup.compare import Key, Layout, Source, Span, in_order
from trueup.compare.lines import ABSENT, NULL
from trueup.errors import SourceError
from trueup.model.reconcile import Column, ColumnType
from trueup.testing.suites.support import refusal

__all__ = ["VALUES", "SourceSuite", "World"]

Row = Mapping[str, Any]

# What is stored, and the field that it must come out as.
VALUES: Mapping[ColumnType, Sequence[tuple[Any, bytes]]] = {
    ColumnType.INTEGER: [
        (0, b"0"),
        (-1, b"-1"),
        (2**53 + 1, b"9007199254740993"),
        (-(2**63), b"-9223372036854775808"),
    ],
    ColumnType.DECIMAL: [
        (Decimal("1.10"), b"1.1"),
        (Decimal(100), b"100"),
        (Decimal("0.000000000000000001"), b"0.000000000000000001"),
        (Decimal("12345678901234567.000000000000000003"), b"12345678901234567.000000000000000003"),
        (Decimal("-0.00"), b"0"),
        (Decimal(2**53 + 1), b"9007199254740993"),
    ],
    ColumnType.TEXT: [
        ("", b""),
        (" ", b" "),
        ("NULL", b"NULL"),
        ("\\N", rb"\\N"),
        ("a\tb\nc\rd\\", rb"a\tb\nc\rd\\"),
        ("\x01\x08\x0b\x0c\x1b", b"\x01\\b\\v\\f\x1b"),
        ("\u00e9", b"\xc3\xa9"),
        ("e\u0301", b"e\xcc\x81"),
        ("\U0001f600\uff61", b"\xf0\x9f\x98\x80\xef\xbd\xa1"),
        ("00123", b"00123"),
        ("1.10", b"1.10"),
    ],
    ColumnType.BOOLEAN: [(True, b"t"), (False, b"f")],
    ColumnType.TIMESTAMP: [
        (datetime(2013, 1, 5, 12, 34, 56, tzinfo=UTC), b"2013-01-05 12:34:56+00"),
        (datetime(2013, 1, 5, 12, 34, 56, 120_000, tzinfo=UTC), b"2013-01-05 12:34:56.12+00"),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), b"1969-12-31 23:59:59.999999+00"),
        (
            datetime(2013, 7, 1, 0, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
            b"2013-06-30 19:00:00+00",
        ),
    ],
    ColumnType.DATE: [(date(2013, 1, 5), b"2013-01-05"), (date(1, 1, 1), b"0001-01-01")],
    ColumnType.UUID: [
        (UUID("0F8FAD5B-D9CB-469F-A165-70867728950E"), b"0f8fad5b-d9cb-469f-a165-70867728950e")
    ],
    ColumnType.BYTES: [(b"", rb"\\x"), (bytes([0, 9, 10, 92, 255]), rb"\\x00090a5cff")],
}

KEYS: Mapping[ColumnType, Sequence[tuple[Any, str]]] = {
    ColumnType.INTEGER: [
        (-10, "-10"),
        (-9, "-9"),
        (0, "0"),
        (9, "9"),
        (10, "10"),
        (2**53 + 1, str(2**53 + 1)),
    ],
    # In the order of their bytes, which is no dictionary's, and not that of UTF-16.
    ColumnType.TEXT: [
        (text, text)
        for text in ("A b", "B", "a", "a\tb", "a b", "ab", "b", "e\u0301", "\u00e9", "\uff61", "\U0001f600")
    ],
}


class World(Protocol):
    """Where rows can be put, to be read as a source."""

    keeps_absent: bool
    """Whether a row may lack an attribute, and the source tells it from NULL."""

    # A world may also have `keeps_empty`, False where empty texts are NULL; else it is told from NULL.

    def source(self, layout: Layout, rows: Iterable[Row]) -> Source:
        """A source of these rows, in a place of its own. A name that a row lacks is absent."""


class SourceSuite:
    """Tests for any `trueup.compare.Source`; needs the fixture `world`."""

    def test_values_survive(self, world: World) -> None:
        keeps_empty = getattr(world, "keeps_empty", True)
        for kind, every in VALUES.items():
            values = [pair for pair in every if keeps_empty or pair[0] not in ("", b"")]
            rows = [{"id": number, "v": value} for number, (value, _) in enumerate(values)]
            expected = {b"%d\t%s" % (number, field) for number, (_, field) in enumerate(values)}
            lines = _scanned(world.source(_layout(ColumnType.INTEGER, kind), rows))
            assert (kind, expected) == (kind, set(lines))

    def test_null_is_no_value_of_any_type(self, world: World) -> None:
        for kind in VALUES:
            source = world.source(_layout(ColumnType.INTEGER, kind), [{"id": 1, "v": None}])
            assert [b"1\t" + NULL] == _scanned(source)

    def test_an_absent_attribute_is_told_from_null_where_there_is_such_a_thing(self, world: World) -> None:
        if world.keeps_absent:
            layout = _layout(ColumnType.INTEGER, ColumnType.TEXT)
            source = world.source(layout, [{"id": 1}, {"id": 2, "v": None}, {"id": 3, "v": ""}])
            assert [b"1\t" + ABSENT, b"2\t" + NULL, b"3\t"] == _scanned(source)

    def test_rows_come_in_the_order_of_their_keys_each_once(self, world: World) -> None:
        for kind, keys in KEYS.items():
            layout = _layout(kind, ColumnType.INTEGER)
            # Put in another order than they must come in.
            source = world.source(layout, [{"id": value, "v": 1} for value, _ in reversed(keys)])
            assert [(text,) for _, text in keys] == _keys(source)

    def test_a_key_of_two_columns_is_ordered_by_the_first_and_then_the_second(self, world: World) -> None:
        layout = _two_columns()
        rows = [{"id": text, "no": number, "v": "x"} for number in (10, 9) for text in ("b", "a", "B")]
        expected = [(text, number) for text in ("B", "a", "b") for number in ("9", "10")]
        assert expected == _keys(world.source(layout, rows))

    def test_nothing_is_in_an_empty_source(self, world: World) -> None:
        assert [] == _scanned(world.source(_layout(ColumnType.INTEGER, ColumnType.TEXT), []))

    def test_spans_that_meet_give_each_row_once(self, world: World) -> None:
        for kind, keys in KEYS.items():
            source = world.source(
                _layout(kind, ColumnType.INTEGER), [{"id": value, "v": 1} for value, _ in keys]
            )
            texts = [(text,) for _, text in keys]
            for bound in texts:
                low, high = _keys(source, Span(high=bound)), _keys(source, Span(low=bound))
                assert (bound, texts) == (bound, low + high)
                assert high[0] == bound

    def test_a_scan_goes_on_after_any_key_and_has_nothing_after_the_last(self, world: World) -> None:
        source = world.source(
            _two_columns(),
            [{"id": text, "no": number, "v": "x"} for text in ("a", "b\\c") for number in (1, 2)],
        )
        everything = _scanned(source)
        for index, key in enumerate(_keys(source), 1):
            assert everything[index:] == _scanned(source, Span().resumed(key))
            within = Span(high=("b\\c", "2")).resumed(key)
            assert everything[index:3] == _scanned(source, within)
        assert [] == _scanned(source, Span().resumed(_keys(source)[-1]))

    def test_a_bound_may_be_the_first_columns_of_a_key(self, world: World) -> None:
        rows = [{"id": text, "no": number, "v": "x"} for text in ("a", "b", "c") for number in (1, 2)]
        source = world.source(_two_columns(), rows)
        everything = _scanned(source)
        assert everything[2:4] == _scanned(source, Span(low=("b",), high=("c",)))
        assert everything[4:] == _scanned(source, Span().resumed(("b",)))

    def test_a_scan_can_be_made_again(self, world: World) -> None:
        source = world.source(_layout(ColumnType.INTEGER, ColumnType.TEXT), [{"id": 1, "v": "x"}])
        assert [b"1\tx"] == _scanned(source) == _scanned(source)

    def test_fetch_gives_what_the_scan_gave(self, world: World) -> None:
        for kind, keys in KEYS.items():
            layout = _layout(kind, ColumnType.TEXT)
            source = world.source(layout, [{"id": value, "v": f"of {text}"} for value, text in keys])
            scanned = {layout.key_of(line): [line] for line in _scanned(source)}
            assert scanned == {key: list(lines) for key, lines in source.fetch(list(scanned)).items()}

    def test_fetch_leaves_out_what_is_not_there(self, world: World) -> None:
        source = world.source(_two_columns(), [{"id": "a", "no": 1, "v": "x"}])
        found = source.fetch([("a", "2"), ("a", "1"), ("b", "1")])
        assert {("a", "1"): [b"a\t1\tx"]} == {key: list(lines) for key, lines in found.items() if lines}
        assert not any(source.fetch([]).values())

    def test_fetch_by_the_first_columns_gives_all_that_begin_with_them_in_order(self, world: World) -> None:
        rows = [{"id": text, "no": number, "v": "x"} for text in ("a", "b") for number in (10, 9)]
        found = world.source(_two_columns(), rows).fetch([("a",)])
        assert {("a",): [b"a\t9\tx", b"a\t10\tx"]} == {key: list(lines) for key, lines in found.items()}

    def test_a_side_that_is_not_there_is_an_error_that_names_it(self, world: World) -> None:
        source = world.source(_layout(ColumnType.INTEGER, ColumnType.TEXT), [{"id": 1, "v": "x"}])
        gone = world_without(source)
        error = refusal(SourceError, _scanned, gone)
        assert "gone" in str(error)


def world_without(source: Source) -> Source:
    """The same source, of a place that does not exist: adapters keep the place in `_table` or `_prefix`."""
    for name in ("_table", "_prefix"):
        if hasattr(source, name):
            setattr(source, name, "gone")
    return source


def _layout(key: ColumnType, value: ColumnType) -> Layout:
    return Layout((Column(name="id", type=key),), (Column(name="v", type=value),))


def _two_columns() -> Layout:
    key = (Column(name="id", type=ColumnType.TEXT), Column(name="no", type=ColumnType.INTEGER))
    return Layout(key, (Column(name="v", type=ColumnType.TEXT),))


def _scanned(source: Source, span: Span = Span()) -> list[bytes]:  # noqa: B008 - it is frozen
    return list(_lines(source, span))


def _keys(source: Source, span: Span = Span()) -> list[Key]:  # noqa: B008 - it is frozen
    return [source.layout.key_of(line) for line in _lines(source, span)]


def _lines(source: Source, span: Span) -> Iterator[bytes]:
    for block in in_order(source.scan(span), source.layout):
        assert block.endswith(b"\n")
        yield from block.removesuffix(b"\n").split(b"\n")
