"""Comparing files: what is truncated, cut off, out of order or of another time is named."""

from __future__ import annotations

import base64
import codecs
import gzip
import json
from datetime import UTC, datetime
from typing import IO, Any

import pytest

from trueup.compare import (
    Kind,
    Span,
    Verdict,
    plan,
)
from trueup.errors import SourceError
from trueup.local.stores import BUCKET
from trueup.model.reconcile import ObjectsSource, Side
from trueup.sources.dynamodb_export import DynamoExport
from trueup.sources.objects import ObjectRows, S3Bucket

from .plain_values import unique
from .reconcile_cases import job, look


def jsonl(client: Any, data: bytes, suffix: str = ".jsonl", **more: Any) -> ObjectRows:
    prefix = unique() + "/"
    client.put_object(Bucket=BUCKET, Key=f"{prefix}part{suffix}", Body=data)
    spec = ObjectsSource(kind="objects", location=f"s3://{BUCKET}/{prefix}", format="jsonl", **more)
    return ObjectRows(S3Bucket(client, BUCKET), prefix, spec, plan(job()).truth, Side.TARGET)


GOOD = b"".join(json.dumps({"id": n, "status": "s", "amount": "1.10"}).encode() + b"\n" for n in range(2_000))


def test_a_truncated_gzip_is_an_error_that_names_it(moto_clients: dict[str, Any]) -> None:
    s3 = moto_clients["s3"]
    whole, cut = jsonl(s3, GOOD), jsonl(s3, gzip.compress(GOOD)[:-20], ".jsonl.gz")
    summary, _ = look(job(), whole, cut)

    assert Verdict.ERROR is summary.judgement.verdict
    assert "part.jsonl.gz is truncated" in summary.judgement.reasons[0]


@pytest.mark.parametrize("left", [0, 1, 9])
def test_a_gzip_that_is_cut_off_at_its_beginning_is_an_error(moto_clients: dict[str, Any], left: int) -> None:
    s3 = moto_clients["s3"]
    whole, cut = jsonl(s3, GOOD), jsonl(s3, gzip.compress(GOOD)[:left], ".jsonl.gz")
    summary, _ = look(job(), whole, cut)

    assert Verdict.ERROR is summary.judgement.verdict
    assert "part.jsonl.gz is " in summary.judgement.reasons[0]


@pytest.mark.parametrize("zipped", [False, True])
def test_a_byte_order_mark_is_no_part_of_the_first_row(moto_clients: dict[str, Any], zipped: bool) -> None:
    s3 = moto_clients["s3"]
    data = codecs.BOM_UTF8 + GOOD
    marked = jsonl(s3, gzip.compress(data), ".jsonl.gz") if zipped else jsonl(s3, data)
    summary, _ = look(job(), jsonl(s3, GOOD), marked)

    assert Verdict.CLEAN is summary.judgement.verdict


def test_a_line_that_is_cut_off_is_a_finding_that_names_it(moto_clients: dict[str, Any]) -> None:
    s3 = moto_clients["s3"]
    summary, findings = look(job(), jsonl(s3, GOOD), jsonl(s3, GOOD[:-10]))

    assert Verdict.INCOMPLETE is summary.judgement.verdict
    assert any("part.jsonl:2000: no JSON" in one.detail and "truncated?" in one.detail for one in findings)
    assert 1 == summary.counts.missing == summary.counts.target_unkeyed


def test_fewer_records_than_declared_are_an_error(moto_clients: dict[str, Any]) -> None:
    s3 = moto_clients["s3"]
    summary, _ = look(job(), jsonl(s3, GOOD), jsonl(s3, GOOD, records=2_001))

    assert Verdict.ERROR is summary.judgement.verdict
    assert "has 2000 rows, and 2001 are declared" in summary.judgement.reasons[0]


def test_an_order_that_is_declared_and_not_there_is_a_finding(moto_clients: dict[str, Any]) -> None:
    s3 = moto_clients["s3"]
    lines = GOOD.splitlines(keepends=True)
    lines[7], lines[8] = lines[8], lines[7]
    unordered = b"".join(lines)
    summary, findings = look(job(), jsonl(s3, unordered, ordered=True), jsonl(s3, unordered, ordered=True))
    assert Verdict.INCOMPLETE is summary.judgement.verdict
    assert [(Kind.UNSORTED, ("7",), Side.TRUTH)] == [(one.kind, one.key, one.side) for one in findings]
    assert Verdict.CLEAN is look(job(), jsonl(s3, unordered), jsonl(s3, GOOD))[0].judgement.verdict


ITEM: dict[str, Any] = {"Item": {"id": {"N": "1"}, "status": {"S": "a"}, "amount": {"N": "1"}}}


def export(client: Any, change: dict[str, Any], *lines: Any) -> DynamoExport:
    prefix = f"{unique()}/AWSDynamoDB/01"
    data = gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines or (ITEM,)))
    summary = {
        "exportTime": "2026-07-06T01:00:00.000Z",
        "itemCount": 1,
        "outputFormat": "DYNAMODB_JSON",
        "exportType": "FULL_EXPORT",
    }
    entry = {"itemCount": 1, "dataFileS3Key": f"{prefix}/data/a.json.gz"}
    for name, part in (("manifest-summary.json", summary), ("manifest-files.json", entry)):
        part |= {key: value for key, value in change.items() if key in part or key == "md5Checksum"}
        client.put_object(Bucket=BUCKET, Key=f"{prefix}/{name}", Body=json.dumps(part).encode() + b"\n")
    client.put_object(Bucket=BUCKET, Key=f"{prefix}/data/a.json.gz", Body=data)
    return DynamoExport(S3Bucket(client, BUCKET), prefix, plan(job()).truth, Side.TARGET)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"itemCount": 2}, "has 1 items, and the manifest says 2"),
        ({"md5Checksum": base64.b64encode(b"x" * 16).decode()}, "has MD5 .* and the manifest says"),
        ({"outputFormat": "ION"}, "is no full export in DynamoDB JSON"),
        ({"exportType": "INCREMENTAL_EXPORT"}, "is no full export in DynamoDB JSON"),
        ({"dataFileS3Key": "elsewhere/AWSDynamoDB/01/data/none.json.gz"}, "none.json.gz cannot be read"),
        ({"exportTime": "yesterday"}, "manifest-summary.json, of the target, is of 'yesterday'"),
        ({"exportTime": "2026-07-06T01:00:00"}, "which is no instant"),
        ({"exportTime": None}, "manifest-summary.json, of the target, has exportTime None"),
        ({"dataFileS3Key": 5}, "manifest-files.json, of the target, has dataFileS3Key 5"),
    ],
)
def test_an_export_that_is_not_whole_is_an_error(
    moto_clients: dict[str, Any], change: dict[str, Any], what: str
) -> None:
    with pytest.raises(SourceError, match=what):
        list(export(moto_clients["s3"], change).scan(Span()).blocks)


def test_the_rows_of_an_export_are_proved_by_the_count_of_its_manifest(moto_clients: dict[str, Any]) -> None:
    client = moto_clients["s3"]
    other = {"Item": {**ITEM["Item"], "id": {"N": "2"}}}
    source = export(client, {"itemCount": 2}, ITEM, other)
    for span, rows in ((Span(), 2), (Span(("2",), None), 1)):
        scan = source.scan(span)
        assert (rows, rows) == (b"".join(scan.blocks).count(b"\n"), scan.counted)


def test_an_export_of_which_a_file_is_not_listed_is_an_error(moto_clients: dict[str, Any]) -> None:
    client = moto_clients["s3"]
    source = export(client, {})
    key = f"{source._prefix}/manifest-summary.json"
    summary = json.loads(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    client.put_object(Bucket=BUCKET, Key=key, Body=json.dumps({**summary, "itemCount": 2}).encode())
    scan = source.scan(Span())
    with pytest.raises(SourceError, match="has 1 items, and the manifest says 2 items"):
        list(scan.blocks)
    assert scan.counted is None


@pytest.mark.parametrize(
    "line",
    [{"item": {}}, {"Item": 5}, {"Item": {"id": 1}}, {"Item": {"id": {"N": "x"}}}, {"Item": {"id": {}}}],
)
def test_a_line_of_an_export_that_is_no_item_is_a_finding_that_names_it(
    moto_clients: dict[str, Any], line: Any
) -> None:
    side = export(moto_clients["s3"], {"itemCount": 3}, ITEM, line, ITEM)
    good, bad, same = b"".join(side.scan(Span()).blocks).splitlines()
    assert b"1\ta\t1" == good == same
    assert rb"\?" == bad[:2]
    assert b"a.json.gz:2: no item in DynamoDB JSON" in bad


def test_an_export_is_of_its_own_time(moto_clients: dict[str, Any]) -> None:
    source = export(moto_clients["s3"], {})
    taken = datetime(2026, 7, 6, 1, tzinfo=UTC)
    assert taken == source.scan(Span(), as_of=taken).as_of
    with pytest.raises(SourceError, match="is of 2026-07-06T01:00:00Z, and what is compared is of"):
        source.scan(Span(), as_of=datetime(2026, 7, 6, 2, tzinfo=UTC))


def test_csv_without_a_column_is_an_error_that_names_it(moto_clients: dict[str, Any]) -> None:
    prefix = unique() + "/"
    moto_clients["s3"].put_object(Bucket=BUCKET, Key=prefix + "a.csv", Body=b"id,status\n1,a\n")
    spec = ObjectsSource(kind="objects", location=f"s3://{BUCKET}/{prefix}", format="csv")
    source = ObjectRows(S3Bucket(moto_clients["s3"], BUCKET), prefix, spec, plan(job()).truth, Side.TRUTH)
    with pytest.raises(SourceError, match="has no column amount; it has id, status"):
        list(source.scan(Span()).blocks)


def test_rows_of_other_ranges_are_passed_over_and_those_without_a_key_are_told_once(
    moto_clients: dict[str, Any],
) -> None:
    of = job({"route": "text", "seq": "integer", "status": "text"}, key=["route", "seq"])
    rows: list[dict[str, Any]] = [
        {"route": "a", "seq": 1, "status": "s"},
        {"route": "m", "seq": 2, "status": "s"},
        {"route": "m\t", "seq": 3, "status": "s"},
        {"route": "m", "seq": "no number", "status": "s"},
        {"route": "z", "status": "s"},
        {"seq": 4, "status": "s"},
        {"route": "z", "seq": 5, "status": 1},
    ]
    prefix = unique() + "/"
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    moto_clients["s3"].put_object(Bucket=BUCKET, Key=f"{prefix}part.jsonl", Body=data)
    spec = ObjectsSource(
        kind="objects", location=f"s3://{BUCKET}/{prefix}", format="jsonl", records=len(rows)
    )
    source = ObjectRows(S3Bucket(moto_clients["s3"], BUCKET), prefix, spec, plan(of).truth, Side.TRUTH)

    def lines(span: Span) -> list[bytes]:
        return b"".join(source.scan(span).blocks).splitlines()

    low, middle, high = Span(high=("m",)), Span(low=("m",), high=("n",)), Span(low=("n",))
    unkeyed = [line for line in lines(low) if line.startswith(b"\\?")]
    assert 3 == len(unkeyed)
    assert [b"a\t1\ts", *unkeyed] == lines(low)
    assert [b"m\t2\ts", b"m\\t\t3\ts"] == lines(middle)
    assert [b"z\t5\t\\?1"] == lines(high)
    assert [b"m\\t\t3\ts"] == lines(middle.resumed(("m", "2")))
    assert {("m\t",): [b"m\\t\t3\ts"], ("z",): [b"z\t5\t\\?1"]} == source.fetch([("m\t",), ("z",)])
    assert {("a", "1"): [b"a\t1\ts"]} == source.fetch([("a", "1"), ("b", "1")])


class OpenedBucket(S3Bucket):
    """Tells which objects were opened."""

    def __init__(self, client: Any) -> None:
        super().__init__(client, BUCKET)
        self.opened: list[str] = []

    def open(self, name: str) -> IO[bytes]:
        self.opened.append(name.rpartition("/")[2])
        return super().open(name)


def by_day(client: Any, days: dict[str, list[dict[str, Any]]]) -> tuple[OpenedBucket, ObjectRows]:
    """Objects that are called after a column, as a source."""
    of = job({"route": "text", "day": "text", "status": "text"}, key=["route", "day"])
    prefix, bucket = unique() + "/", OpenedBucket(client)
    for day, rows in days.items():
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        client.put_object(Bucket=BUCKET, Key=f"{prefix}{day}.jsonl", Body=data)
    named = {"column": "day", "suffix": ".jsonl"}
    spec = ObjectsSource.model_validate(
        {"kind": "objects", "location": f"s3://{BUCKET}/{prefix}", "format": "jsonl", "named": named}
    )
    return bucket, ObjectRows(bucket, prefix, spec, plan(of).truth, Side.TRUTH)


def test_of_objects_that_are_called_after_their_rows_only_those_are_read_that_are_asked_for(
    moto_clients: dict[str, Any],
) -> None:
    days = {day: [{"route": r, "day": day, "status": "s"} for r in "ab"] for day in ("d1", "d2", "d3")}
    bucket, source = by_day(moto_clients["s3"], days)
    assert 6 == len(b"".join(source.scan(Span()).blocks).splitlines())
    bucket.opened.clear()
    assert {("a", "d2"): [b"a\td2\ts"]} == source.fetch([("a", "d2"), ("a", "d9"), ("c", "d2")])
    assert ["d2.jsonl"] == bucket.opened
    # What names no day may be anywhere.
    assert 3 == len(source.fetch([("b",)])["b",])
    assert ["d2.jsonl", "d1.jsonl", "d2.jsonl", "d3.jsonl"] == bucket.opened


@pytest.mark.parametrize("span", [Span(), Span(high=("b",)), Span(low=("b",))])
def test_a_row_in_an_object_that_is_called_otherwise_is_an_error(
    moto_clients: dict[str, Any], span: Span
) -> None:
    rows = [{"route": route, "day": "d2", "status": "s"} for route in "ab"]
    _, source = by_day(moto_clients["s3"], {"d1": [{"route": "a", "status": "no day"}, *rows]})
    with pytest.raises(SourceError, match=r"d1\.jsonl has a row that belongs into d2\.jsonl"):
        list(source.scan(span).blocks)
