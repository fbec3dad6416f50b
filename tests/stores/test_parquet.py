"""What Parquet can hold comes out exactly, or is refused by its name; and nothing of it is held at once."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.compare import Layout, Span, Verdict, plan
from trueup.errors import SourceError
from trueup.model.reconcile import Column, ObjectsSource, Side
from trueup.sources.objects import ObjectRows

from .listing_cases import file_of
from .reconcile_cases import job, look


class Objects:
    """Objects in memory as a bucket."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self._objects = objects

    def names(self, prefix: str) -> Sequence[str]:
        return sorted(name for name in self._objects if name.startswith(prefix))

    def open(self, name: str) -> IO[bytes]:
        return io.BytesIO(self._objects[name])


SPEC = ObjectsSource(kind="objects", location="s3://b/rows/", format="parquet")


def rows_of(data: bytes, layout: Layout, normalise: Any = None) -> ObjectRows:
    return ObjectRows(Objects({"rows/0.parquet": data}), "rows/", SPEC, layout, Side.TRUTH, normalise)


def layout(kind: str, **reading: Any) -> Layout:
    value = Column.model_validate({"name": "v", "type": kind, "truth": reading})
    return Layout((Column(name="id", type="integer"),), (value,))


def table(array: pa.Array) -> pa.Table:
    return pa.table({"id": pa.array(range(len(array)), pa.int32()), "v": array})


def fields(source: ObjectRows) -> list[bytes]:
    """The fields after the key."""
    lines = b"".join(source.scan(Span()).blocks).splitlines()
    return [line.split(b"\t", 1)[1] for line in lines]


def whole(kind: pa.DataType, *numbers: int) -> pa.Array:
    """An array of what whole numbers stand for in a type."""
    return pa.array(numbers, pa.int64()).view(kind)


A = pa.array


@pytest.mark.parametrize(
    ("array", "of", "expected"),
    [
        (A([2**64 - 1, None], pa.uint64()), layout("integer"), [b"18446744073709551615", b"\\N"]),
        (A([-5], pa.int8()), layout("decimal"), [b"-5"]),
        (A([5], pa.int16()), layout("decimal", times="0.01"), [b"0.05"]),
        (A([Decimal("5.00")], pa.decimal128(5, 2)), layout("integer"), [b"5"]),
        (A([Decimal("5.50")], pa.decimal128(5, 2)), layout("integer"), [b"\\?5.50"]),
        (
            A([Decimal("1" * 50 + ".10")], pa.decimal256(60, 2)),
            layout("decimal"),
            [b"1" * 50 + b".1"],
        ),
        (
            A([0.1, 1e22, 5e-324, -0.0, float("nan"), float("inf"), float("-inf")]),
            layout("float"),
            [
                b"0.1",
                b"10000000000000000000000",
                b"0." + b"0" * 323 + b"5",
                b"0",
                b"NaN",
                b"Infinity",
                b"-Infinity",
            ],
        ),
        (A([0.1, 16777216.0], pa.float32()), layout("float"), [b"0.1", b"16777216"]),
        (A([Decimal("1.50")], pa.decimal128(5, 2)), layout("float"), [b"1.5"]),
        (A(["ä", None, ""], pa.large_string()), layout("text"), ["ä".encode(), b"\\N", b""]),
        (A(["ä"], pa.string_view()), layout("text"), ["ä".encode()]),
        (A(["x", "y", "x", None]).dictionary_encode(), layout("text"), [b"x", b"y", b"x", b"\\N"]),
        (A([None], pa.null()), layout("timestamp"), [b"\\N"]),
        (
            whole(pa.timestamp("s", "America/New_York"), 0, -1, 253402300800),
            layout("timestamp"),
            [b"1970-01-01 00:00:00+00", b"1969-12-31 23:59:59+00", b"\\?10000-01-01 00:00:00.000Z"],
        ),
        (
            whole(pa.timestamp("ms", "UTC"), -1, 1500, -62135596800001),
            layout("timestamp"),
            [b"1969-12-31 23:59:59.999+00", b"1970-01-01 00:00:01.5+00", b"\\?0000-12-31 23:59:59.999Z"],
        ),
        (
            whole(pa.timestamp("ns", "UTC"), 1000, 1001),
            layout("timestamp"),
            [b"1970-01-01 00:00:00.000001+00", b"\\?1970-01-01 00:00:00.000001001Z"],
        ),
        (
            A([datetime(2013, 7, 1, 2, 30), datetime(2013, 10, 27, 2, 30)], pa.timestamp("us")),  # noqa: DTZ001
            layout("timestamp", zone="Europe/Paris"),
            [b"2013-07-01 00:30:00+00", b"\\?2013-10-27 02:30:00.000000"],
        ),
        (
            A([1_500], pa.int64()),
            layout("timestamp", format="milliseconds"),
            [b"1970-01-01 00:00:01.5+00"],
        ),
        (A([date(2013, 1, 5)], pa.date64()), layout("date"), [b"2013-01-05"]),
        (
            A([10_000_000], pa.int32()).cast(pa.date32()),
            layout("date"),
            [b"\\?29349-01-26"],
        ),
        (
            A([bytes(range(16)), None], pa.binary(16)),
            layout("uuid"),
            [b"00010203-0405-0607-0809-0a0b0c0d0e0f", b"\\N"],
        ),
        (A([bytes(16)], pa.binary(16)), layout("bytes"), [b"\\\\x" + b"00" * 16]),
        (A([b"\x01"], pa.large_binary()), layout("bytes"), [b"\\\\x01"]),
        (
            A(['{"b": 1.10, "a": null}', "null", "{", "NaN"]),
            layout("json"),
            [b'{"a":null,"b":1.1}', b"\\N", b"\\?b'{'", b"\\?b'NaN'"],
        ),
        (A(['{"a": 1}'], pa.json_()), layout("json"), [b'{"a":1}']),
        # Texts may be of any type, as in CSV.
        (A(["1.10", "x"]), layout("decimal"), [b"1.1", b"\\?x"]),
        (A(["2013-01-05T01:00:00+01:00"]), layout("timestamp"), [b"2013-01-05 00:00:00+00"]),
    ],
)
def test_each_type_comes_out_exactly(array: pa.Array, of: Layout, expected: list[bytes]) -> None:
    assert expected == fields(rows_of(file_of(table(array)), of))


def test_timestamps_of_old_writers_are_read_beyond_what_nanoseconds_can_count() -> None:
    moments = [datetime(9999, 12, 31, 23, 59, 59), datetime(1, 1, 1)]  # noqa: DTZ001
    data = file_of(
        table(A(moments, pa.timestamp("us"))), use_deprecated_int96_timestamps=True, store_schema=False
    )
    found = fields(rows_of(data, layout("timestamp", zone="UTC")))
    assert [b"9999-12-31 23:59:59+00", b"0001-01-01 00:00:00+00"] == found


def test_what_old_writers_wrote_finer_than_a_microsecond_is_unreadable() -> None:
    array = whole(pa.timestamp("ns"), -1, 1000, 1001)
    data = file_of(table(array), use_deprecated_int96_timestamps=True, store_schema=False)
    assert [
        b"\\?1969-12-31 23:59:59.999999999",
        b"1970-01-01 00:00:00.000001+00",
        b"\\?1970-01-01 00:00:00.000001001",
    ] == fields(rows_of(data, layout("timestamp", zone="UTC")))


def test_a_text_that_is_no_utf8_is_unreadable_and_alone() -> None:
    broken = pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string())
    assert [b"a", b"\\?b'\\\\xff'", b"\\N"] == fields(rows_of(file_of(table(broken)), layout("text")))


@pytest.mark.parametrize(
    ("array", "of", "what"),
    [
        (
            A([{"x": 1}]),
            layout("json"),
            r"Column v of rows/0.parquet, the truth, is struct<x: int64>, which .* json",
        ),
        (A([[1]]), layout("text"), "is list<.*>, which cannot be compared as text"),
        (A([[("k", 1)]], pa.map_(pa.string(), pa.int64())), layout("text"), "is map<"),
        (A([time(1)]), layout("text"), r"is time64\[us\], which cannot be compared as text"),
        (A([1.5]), layout("decimal"), "is double, which cannot be compared as decimal"),
        (A([1.5]), layout("integer"), "is double, which cannot be compared as integer"),
        (A([1]), layout("text"), "is int64, which cannot be compared as text"),
        (A([b"x"]), layout("text"), "is binary, which cannot be compared as text"),
        (A([1]), layout("boolean"), "is int64"),
        (A([0], pa.timestamp("us")), layout("timestamp"), r"is timestamp\[us\], which cannot"),
        (
            A([0], pa.timestamp("us", "UTC")),
            layout("timestamp", format="seconds"),
            r"is timestamp\[us, tz=UTC\]",
        ),
        (A([1]), layout("timestamp"), "is int64, which cannot be compared as timestamp"),
        (A([1]), layout("integer", name="w"), "has no column w; it has id, v"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_its_name(array: pa.Array, of: Layout, what: str) -> None:
    with pytest.raises(SourceError, match=what):
        fields(rows_of(file_of(table(array)), of))


def test_two_columns_of_one_name_are_refused() -> None:
    twice = pa.Table.from_arrays([A([1]), A([2]), A([3])], names=["id", "v", "v"])
    with pytest.raises(SourceError, match="has two columns v"):
        fields(rows_of(file_of(twice), layout("integer")))


def test_a_name_with_a_dot_is_a_name() -> None:
    of = Layout((Column(name="id", type="integer"),), layout("integer", name="a.b").values)
    nested = pa.table({"id": A([1]), "a": A([{"b": 7}]), "a.b": A([5])})
    assert [b"5"] == fields(rows_of(file_of(nested), of))


def test_normalise_gets_all_columns_nested_ones_too() -> None:
    def normalise(row: Any) -> Any:
        return {"id": row["id"], "v": f"{row['v']['x']} {row['when']} {row['price']}"}

    data = file_of(
        pa.table(
            {
                "id": A([1]),
                "v": A([{"x": 7}]),
                "when": whole(pa.timestamp("s", "UTC"), 0),
                "price": A([Decimal("1.10")]),
            }
        )
    )
    assert [b"7 1970-01-01 00:00:00.000Z 1.10"] == fields(rows_of(data, layout("text"), normalise))


def test_without_an_object_of_rows_it_is_an_error_and_not_an_empty_side() -> None:
    source = ObjectRows(Objects({"rows/_SUCCESS": b""}), "rows/", SPEC, layout("text"), Side.TRUTH)
    with pytest.raises(SourceError, match="There is no object under rows/"):
        fields(source)


# What is damaged.

MANY = 3_000
CASES = plan(job()).truth
GOOD = pa.table(
    {
        "id": A(range(MANY)),
        "status": A([f"status {n}" for n in range(MANY)]),
        "amount": A([Decimal(n) / 100 for n in range(MANY)], pa.decimal128(18, 4)),
    }
)
BYTES = file_of(GOOD, row_group_size=1_000, write_page_checksum=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(BYTES) - 1))
def test_cut_off_anywhere_it_is_an_error_that_names_it(length: int) -> None:
    summary, _ = look(job(), rows_of(BYTES, CASES), rows_of(BYTES[:length], CASES))
    assert Verdict.ERROR is summary.judgement.verdict
    assert "rows/0.parquet, of the truth, is no whole Parquet" in summary.judgement.reasons[0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(BYTES) - 1), st.integers(1, 255))
def test_with_another_byte_it_is_never_another_row(at: int, flip: int) -> None:
    broken = bytearray(BYTES)
    broken[at] ^= flip
    try:
        found = fields(rows_of(bytes(broken), CASES))
    except SourceError:
        return
    assert found == fields(rows_of(BYTES, CASES))


def test_as_many_rows_as_declared() -> None:
    spec = SPEC.model_copy(update={"records": MANY + 1})
    source = ObjectRows(Objects({"rows/0": BYTES}), "rows/", spec, CASES, Side.TRUTH)
    with pytest.raises(SourceError, match="has 3000 rows, and 3001 are declared"):
        fields(source)


# Known damage between two sides.


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_planted_damage_is_found_and_none_is_invented(data: st.DataObject) -> None:
    number = st.integers(-(10**17), 10**17).map(lambda n: Decimal(n).scaleb(-18))
    row = st.tuples(st.none() | st.text(max_size=4), st.none() | number)
    truth = data.draw(st.dictionaries(st.integers(-(2**63), 2**63 - 1), row, min_size=1, max_size=30))
    target = {key: value for key, value in truth.items() if data.draw(st.integers(0, 4))}
    target |= {key: data.draw(row) for key in target if not data.draw(st.integers(0, 4))}
    target |= data.draw(st.dictionaries(st.integers(-9, 9), row, max_size=3))

    summary, found = look(job(empty="allowed"), side(truth), side(target))
    expected = {
        (str(key),) for key in truth.keys() | target.keys() if truth.get(key, 0) != target.get(key, 0)
    }
    assert expected == {one.key for one in found}
    assert (len(truth), len(target)) == (summary.counts.truth_rows, summary.counts.target_rows)


def side(rows: dict[int, tuple[str | None, Decimal | None]]) -> ObjectRows:
    """A side in three objects, rows in no order."""
    keys = list(rows)
    random.Random(len(keys)).shuffle(keys)
    objects = {}
    for number in range(3):
        some = keys[number::3]
        columns = {
            "id": A(some, pa.int64()),
            "status": A([rows[key][0] for key in some], pa.string()),
            "amount": A([rows[key][1] for key in some], pa.decimal128(38, 18)),
        }
        objects[f"rows/{number}.parquet"] = file_of(pa.table(columns), row_group_size=2)
    return ObjectRows(Objects(objects), "rows/", SPEC, CASES, Side.TARGET)


# Memory, and the library.


def test_a_row_group_is_not_held_at_once(tmp_path: Path) -> None:
    rows = 200_000
    texts = [f"{random.Random(n).random()} of a text that is longer than a number" for n in range(rows)]
    data = file_of(table(A(texts)), row_group_size=rows, use_dictionary=False, compression="none")
    (tmp_path / "rows").write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", _SCANS, str(tmp_path / "rows")], capture_output=True, text=True, check=True
    )
    scanned, most = map(int, done.stdout.split())
    assert rows == scanned
    # What Arrow itself counts: pages and batches, of a row group that is many times as large.
    assert len(data) > 10 * 2**20
    assert most < 4 * 2**20


_SCANS = """
import sys, pyarrow
from pathlib import Path
from trueup.compare import Layout, Span
from trueup.model.reconcile import Column, ObjectsSource, Side
from trueup.sources.objects import ObjectRows
class Bucket:
    def names(self, prefix): return [prefix]
    def open(self, name): return Path(name).open("rb")
layout = Layout((Column(name="id", type="integer"),), (Column(name="v", type="text"),))
spec = ObjectsSource(kind="objects", location="s3://b/rows", format="parquet", ordered=True)
scan = ObjectRows(Bucket(), sys.argv[1], spec, layout, Side.TRUTH).scan(Span())
print(sum(block.count(b"\\n") for block in scan.blocks), pyarrow.default_memory_pool().max_memory())
"""


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    source = rows_of(BYTES, CASES)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(SourceError, match="Parquet, and the package pyarrow is not installed") as caught:
        fields(source)
    assert "Install trueup[parquet]" in str(caught.value)


def test_nothing_but_parquet_needs_the_library() -> None:
    code = "import sys; sys.modules['pyarrow'] = None; import trueup.sources.opening, trueup.worker.main"
    subprocess.run([sys.executable, "-c", code], check=True)
