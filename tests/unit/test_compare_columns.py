"""Columns of values are read as each value alone is, and what is plain is read without looking at each."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.compare import Missing, column_reader, columns, reader
from trueup.model.reconcile import Side

from .compare_cases import CASES, TEXTS, column
from .test_compare import READ

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=4) | st.decimals()
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001
NUMERALS = ("0", "-0", "-0.00", "1.10", "10", "-1.50", "100.0", "1E+3", "1\n2", "0.100000000000000001")
INSTANTS = (
    "2024-02-29T00:00:00Z",
    "2023-02-29T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "2026-01-05 12:00:00.500000+00:00",
    "2026-01-05 12:00:00.000+0000",
    "2026-01-05 12:00:00",
    "2026-01-05T12:00:00.5+00",
    "2026-01-05T12:00:00+01:00",
    "2026-01-05T24:00:00Z",
    "2026-01-05T12:00:00Z\n2026-01-05T12:00:00Z",
)
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers() | st.integers().map(str) | st.integers().map(Decimal),
    "decimal": DECIMALS | DECIMALS.map(str) | st.integers() | st.sampled_from(NUMERALS),
    "float": DECIMALS | DECIMALS.map(str) | st.integers() | st.sampled_from(NUMERALS),
    "text": st.text() | st.sampled_from(TEXTS),
    "boolean": st.booleans() | st.sampled_from(["true", "FALSE", "t", "f", "yes"]),
    "timestamp": MOMENTS.map(datetime.isoformat) | st.sampled_from(INSTANTS),
    "date": st.dates().map(str) | st.sampled_from(["2026-W01-1", "2023-02-29", "20260105", "2026-01-05\n"]),
    "uuid": st.uuids().map(str) | st.uuids().map(lambda one: one.hex),
    "bytes": st.binary() | st.just("AP8="),
    "json": st.dictionaries(st.text(), st.integers()),
}
OTHERS = st.sampled_from([None, Missing, "", "NA", 0, 1, True, 0.5, [], {}, "9" * 1_001, 10**950])
WEIRD = st.sampled_from([value for _, _, value, _ in READ]) | OTHERS | st.sampled_from(NUMERALS + INSTANTS)
READINGS: dict[str, list[dict[str, Any]]] = {
    "integer": [{}, {"times": "100"}],
    "decimal": [{}, {"times": "0.01"}, {"nulls": ["", "NA"]}],
    "text": [{}, {"nulls": ["", "NA"]}],
    "timestamp": [{}, {"zone": "UTC"}, {"zone": "Europe/Paris"}, {"format": "seconds"}, {"nulls": ["NA"]}],
}


@pytest.mark.parametrize("kind", PLAIN)
def test_a_column_is_read_as_each_of_its_values_is(kind: str) -> None:
    @settings(max_examples=CASES, deadline=None)
    @given(
        reading=st.sampled_from(READINGS.get(kind, [{}])),
        values=st.lists(PLAIN[kind]) | st.lists(PLAIN[kind] | OTHERS) | st.lists(WEIRD),
    )
    def holds(reading: dict[str, Any], values: list[Any]) -> None:
        of = column(kind, truth=reading)
        read = reader(of, Side.TRUTH)
        assert [read(value).decode() for value in values] == column_reader(of, Side.TRUTH)(values)

    holds()


@pytest.mark.parametrize(
    ("kind", "reading", "values", "fields"),
    [
        ("integer", {}, [1, -2, "3", Decimal(4)], ["1", "-2", "3", "4"]),
        ("decimal", {}, ["1.10", "-0.0", 2**53 + 1, Decimal("0.3")], ["1.1", "0", str(2**53 + 1), "0.3"]),
        ("text", {}, ["a", "", "é"], ["a", "", "é"]),
        ("boolean", {}, [True, False, "t", "false"], ["t", "f", "t", "f"]),
        ("timestamp", {}, ["2024-02-29T01:02:03.50Z"], ["2024-02-29 01:02:03.5+00"]),
        ("timestamp", {"zone": "UTC"}, ["2024-02-29 01:02:00"], ["2024-02-29 01:02:00+00"]),
        ("date", {}, ["2024-02-29"], ["2024-02-29"]),
        ("uuid", {}, ["0f8fad5b-d9cb-469f-a165-70867728950e"], ["0f8fad5b-d9cb-469f-a165-70867728950e"]),
    ],
)
def test_what_is_plain_is_not_read_one_by_one(
    monkeypatch: pytest.MonkeyPatch, kind: str, reading: dict[str, Any], values: list[Any], fields: list[str]
) -> None:
    def never(value: Any) -> bytes:
        raise AssertionError(f"{value!r} was read alone")

    monkeypatch.setattr(columns, "reader", lambda *_: never)
    assert fields == column_reader(column(kind, truth=reading), Side.TRUTH)(values)


def test_among_plain_values_only_the_others_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[Any] = []
    monkeypatch.setattr(columns, "reader", lambda *_: lambda value: alone.append(value) or b"?")
    read = column_reader(column("text", truth={"nulls": ["NA"]}), Side.TRUTH)
    assert ["a", "?", "b", "?", "?"] == read(["a", None, "b", "NA", Missing])
    assert [None, "NA", Missing] == alone
