"""Parquet and inventories behave as every other source, and what is wrong with one is named."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.compare import Layout, Source, Span, Verdict, in_order
from trueup.errors import SourceError
from trueup.model.reconcile import Column
from trueup.testing.suites.source import SourceSuite

from . import listing_cases
from .listing_cases import InventoryWorld, ParquetWorld
from .reconcile_cases import job, look


class TestParquet(SourceSuite):
    @pytest.fixture(params=[{}, {"compression": "zstd", "version": "1.0", "store_schema": False}])
    def world(self, request: pytest.FixtureRequest, moto_clients: dict[str, Any]) -> ParquetWorld:
        return ParquetWorld(moto_clients["s3"], **request.param)


class TestInventoryInCsv(SourceSuite):
    @pytest.fixture
    def world(self, moto_clients: dict[str, Any]) -> InventoryWorld:
        return InventoryWorld(moto_clients["s3"], "CSV")


class TestInventoryInParquet(SourceSuite):
    @pytest.fixture
    def world(self, moto_clients: dict[str, Any]) -> InventoryWorld:
        return InventoryWorld(moto_clients["s3"], "Parquet")


# What is in an inventory.

TEXT, FLAG, WHEN = pa.string(), pa.bool_(), pa.timestamp("ms", "UTC")
FIELDS: Mapping[str, pa.DataType] = {
    "Bucket": TEXT,
    "Key": TEXT,
    "VersionId": TEXT,
    "IsLatest": FLAG,
    "IsDeleteMarker": FLAG,
    "Size": pa.int64(),
    "LastModifiedDate": WHEN,
    "ETag": TEXT,
}
IN_PARQUET = {
    "Bucket": "bucket",
    "Key": "key",
    "VersionId": "version_id",
    "IsLatest": "is_latest",
    "IsDeleteMarker": "is_delete_marker",
    "Size": "size",
    "LastModifiedDate": "last_modified_date",
    "ETag": "e_tag",
}
LAYOUT = Layout(
    tuple(
        Column.model_validate({"name": name, "type": "text", "truth": {"name": field}})
        for name, field in (("key", "Key"), ("version", "VersionId"))
    ),
    tuple(
        Column.model_validate({"name": name, "type": kind, "truth": {"name": field}})
        for name, kind, field in (
            ("size", "integer", "Size"),
            ("changed", "timestamp", "LastModifiedDate"),
            ("etag", "text", "ETag"),
        )
    ),
)
AT = datetime(2026, 7, 5, 12, 0, 0, 500_000, tzinfo=UTC)


def version(key: str, number: int, *, latest: bool, marker: bool = False) -> dict[str, Any]:
    has = {} if marker else {"Size": number, "ETag": f"e{number}"}
    return {
        "Bucket": "b",
        "Key": key,
        "VersionId": f"v{number}",
        "IsLatest": latest,
        "IsDeleteMarker": marker,
        "LastModifiedDate": AT + timedelta(seconds=number),
        **has,
    }


ROWS = [
    version("a b/c+d é%.txt", 1, latest=True),
    version("gone", 3, latest=True, marker=True),
    version("gone", 2, latest=False),
    version("twice", 4, latest=True),
    version("twice", 1, latest=False),
]


@pytest.fixture(params=["CSV", "Parquet"])
def inventory(request: pytest.FixtureRequest, moto_clients: dict[str, Any]) -> Callable[..., Source]:
    def made(rows: list[dict[str, Any]] = ROWS, layout: Layout = LAYOUT, **more: Any) -> Source:
        types = dict(FIELDS)
        if request.param == "Parquet":
            types = {IN_PARQUET[name]: kind for name, kind in FIELDS.items()}
            rows = [{IN_PARQUET[name]: value for name, value in row.items()} for row in rows]
        else:
            # As S3 writes them.
            rows = [
                {
                    **row,
                    "IsLatest": str(row["IsLatest"]).lower(),
                    "IsDeleteMarker": str(row["IsDeleteMarker"]).lower(),
                    "LastModifiedDate": f"{row['LastModifiedDate']:%Y-%m-%dT%H:%M:%S}.500Z",
                }
                for row in rows
            ]
        return InventoryWorld(moto_clients["s3"], request.param).inventory(layout, types, [rows], **more)

    return made


def lines(source: Source) -> list[str]:
    blocks = in_order(source.scan(Span()), source.layout)
    return [line.decode() for block in blocks for line in block.removesuffix(b"\n").split(b"\n")]


def test_the_latest_versions_are_the_objects_that_are_there(inventory: Callable[..., Source]) -> None:
    assert [
        "a b/c+d é%.txt\tv1\t1\t2026-07-05 12:00:01.5+00\te1",
        "twice\tv4\t4\t2026-07-05 12:00:04.5+00\te4",
    ] == lines(inventory())


def test_of_all_versions_each_is_a_row_and_a_delete_marker_has_no_size(
    inventory: Callable[..., Source],
) -> None:
    assert [
        "a b/c+d é%.txt\tv1\t1\t2026-07-05 12:00:01.5+00\te1",
        "gone\tv2\t2\t2026-07-05 12:00:02.5+00\te2",
        "gone\tv3\t\\N\t2026-07-05 12:00:03.5+00\t\\N",
        "twice\tv1\t1\t2026-07-05 12:00:01.5+00\te1",
        "twice\tv4\t4\t2026-07-05 12:00:04.5+00\te4",
    ] == lines(inventory(versions="all"))


def test_it_shows_the_instant_at_which_it_was_begun(inventory: Callable[..., Any]) -> None:
    source, taken = inventory(), datetime(2026, 7, 6, 1, tzinfo=UTC)
    assert taken == source.taken() == source.scan(Span(), taken).as_of
    with pytest.raises(SourceError, match=r"is of 2026-07-06T01:00:00Z, and what is compared is of .*01:01"):
        source.scan(Span(), taken + timedelta(minutes=1))


def damaged(**entry: Any) -> dict[str, Any]:
    return {"files": lambda manifest: [{**one, **entry} for one in manifest["files"]]}


@pytest.mark.parametrize(
    ("how", "what"),
    [
        (
            {"checksum": "0" * 32},
            r"manifest.json, of the truth, has MD5 \w+, and manifest.checksum says 0{32}",
        ),
        (
            {"manifest": damaged(MD5checksum="1" * 32)},
            r"data/0\.\S+, of the truth, has MD5 \w+, and .* MD5 1{32}",
        ),
        ({"manifest": damaged(size=7)}, r"data/0\.\S+, of the truth, has \d+ bytes, and the manifest says 7"),
        ({"manifest": damaged(key="gone")}, "gone cannot be read"),
        ({"manifest": {"fileFormat": "ORC"}}, "is in ORC"),
        ({"manifest": {"files": None}}, "manifest.json, of the truth, has no files"),
    ],
    ids=["manifest", "checksum", "size", "a file that is not there", "format", "no files"],
)
def test_what_is_not_as_its_manifest_says_is_an_error_that_names_it(
    inventory: Callable[..., Source], how: dict[str, Any], what: str
) -> None:
    with pytest.raises(SourceError, match=what):
        lines(inventory(**how))


def test_a_field_that_it_does_not_have_is_named(inventory: Callable[..., Source]) -> None:
    lacking = Layout(LAYOUT.key, (Column(name="StorageClass", type="text"),))
    with pytest.raises(SourceError, match=r"has no field StorageClass; it has Bucket, Key, VersionId,"):
        lines(inventory(layout=lacking))


@pytest.mark.parametrize("form", ["CSV", "Parquet"])
def test_all_versions_of_an_inventory_of_current_ones_are_refused(
    moto_clients: dict[str, Any], form: str
) -> None:
    layout = Layout((Column(name="Key", type="text"),))
    world = InventoryWorld(moto_clients["s3"], form)
    rows = [{"Bucket": "b", "Key": "k"}]
    types = {"Bucket": TEXT, "Key": TEXT}
    assert ["k"] == lines(world.inventory(layout, types, [rows]))
    with pytest.raises(SourceError, match="lists current versions only"):
        lines(world.inventory(layout, types, [rows], versions="all"))


def test_a_row_that_cannot_be_read_is_a_finding(moto_clients: dict[str, Any]) -> None:
    world = InventoryWorld(moto_clients["s3"], "CSV")
    layout = Layout((Column(name="Key", type="text"),), (Column(name="Bucket", type="text"),))
    types = {"Bucket": TEXT, "Key": TEXT, "IsLatest": TEXT}
    values = (("k", "true"), ("l", "perhaps"), ("m", None))
    rows = [{"Bucket": "b", "Key": key, "IsLatest": latest} for key, latest in values]
    found = lines(world.inventory(layout, types, [rows]))
    why = "no IsLatest that is true or false"
    assert [f"csv.gz:2: {why}", f"csv.gz:3: {why}", "k\tb"] == sorted(
        line.rpartition("/")[2].removeprefix("0.") for line in found
    )
    # A field more in the manifest than in the rows.
    longer = world.inventory(layout, types, [rows], manifest={"fileSchema": "Bucket, Key, IsLatest, Size"})
    assert all("3 fields, and the manifest names 4" in line for line in lines(longer))


def test_a_key_that_is_no_utf8_is_unreadable(
    moto_clients: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_cases, "quote_plus", lambda key, safe: key)
    layout = Layout((Column(name="Key", type="text"),), (Column(name="Bucket", type="text"),))
    world = InventoryWorld(moto_clients["s3"], "CSV")
    (line,) = lines(world.inventory(layout, {"Bucket": TEXT, "Key": TEXT}, [[{"Key": "a%FFb"}]]))
    assert "a key that is no UTF-8" in line


def test_a_damaged_inventory_is_never_clean(moto_clients: dict[str, Any]) -> None:
    of = job({"Key": "text", "Size": "integer"}, key=["Key"])
    layout = Layout((Column(name="Key", type="text"),), (Column(name="Size", type="integer"),))
    world = InventoryWorld(moto_clients["s3"], "CSV")
    types = {"Bucket": TEXT, "Key": TEXT, "Size": pa.int64()}
    rows = [[{"Key": f"k{n}", "Size": n} for n in range(500)]]

    good, bad = (
        world.inventory(layout, types, rows, manifest=one) for one in ({}, damaged(MD5checksum="1" * 32))
    )
    assert Verdict.CLEAN is look(of, good, good)[0].judgement.verdict
    summary, _ = look(of, good, bad)
    assert Verdict.ERROR is summary.judgement.verdict
    assert "0.csv.gz" in summary.judgement.reasons[0]


class InMemory:
    """What of a client of S3 an inventory needs."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def put_object(self, *, Key: str, Body: bytes, **_: Any) -> None:  # noqa: N803 - as boto3 has it
        self._objects[Key] = Body

    def get_object(self, *, Key: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        return {"Body": io.BytesIO(self._objects[Key])}


KEYS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("+ %/&=\"',"), min_size=1)


@pytest.mark.parametrize("form", ["CSV", "Parquet"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_planted_damage_between_two_listings_is_found_and_none_is_invented(
    form: str, data: st.DataObject
) -> None:
    truth = data.draw(st.dictionaries(KEYS, st.integers(0, 2**63 - 1), min_size=1, max_size=20))
    target = {key: size for key, size in truth.items() if data.draw(st.integers(0, 4))}
    target |= {key: data.draw(st.integers(0, 9)) for key in target if not data.draw(st.integers(0, 4))}
    target |= data.draw(st.dictionaries(KEYS, st.integers(0, 9), max_size=3))

    of = job({"Key": "text", "Size": "integer"}, key=["Key"], empty="allowed")
    layout = Layout((Column(name="Key", type="text"),), (Column(name="Size", type="integer"),))
    types = {"Bucket": TEXT, "Key": TEXT, "Size": pa.int64()}
    world = InventoryWorld(InMemory(), form)
    sides = [
        world.inventory(layout, types, [[{"Key": key, "Size": size} for key, size in side.items()]])
        for side in (truth, target)
    ]
    summary, found = look(of, *sides)
    expected = {(key,) for key in truth.keys() | target.keys() if truth.get(key) != target.get(key)}
    assert expected == {one.key for one in found}
    assert (len(truth), len(target)) == (summary.counts.truth_rows, summary.counts.target_rows)


def test_the_manifest_can_be_waited_for(moto_clients: dict[str, Any]) -> None:
    of = job(
        {"Key": "text"},
        key=["Key"],
        truth={"kind": "s3-inventory", "location": "s3://inv/b/daily/{day}T01-00Z"},
        parameters={"type": "object", "properties": {"day": {"type": "string"}}},
        waitFor={"location": "s3://inv/b/daily/{day}T01-00Z/manifest.checksum", "minutes": 120},
    ).filled({"day": "2026-07-06"})
    assert of.wait_for is not None
    assert "s3://inv/b/daily/2026-07-06T01-00Z/manifest.checksum" == of.wait_for.location
