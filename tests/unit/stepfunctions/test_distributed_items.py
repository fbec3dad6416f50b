"""What a Distributed Map iterates over: S3 in its formats, pairs of objects, and how large an item may be.

Where a test names no source: [dg:input-output-itemreader] and [dg:service-quotas]; words of errors are ours
then.
"""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError

from .distributed import Bucket, distributed, reader
from .harness import Services, execute, passing


@pytest.mark.parametrize(
    ("expected", "config", "content"),
    [
        ([{"a": 1}, 2], {}, '[{"a": 1}, 2]'),
        ([5], {"ItemsPointer": "/deep/list"}, '{"deep": {"list": [5]}}'),
        ([1, {"b": 2}], {"InputType": "JSONL"}, '1\n{"b": 2}\n\n'),
        ([{"A": "x", "B": "y"}], {"InputType": "CSV"}, "A,B\nx,y\n"),
        # With the mark that spreadsheets begin a file with, and the ends of lines that they write.
        ([{"A": "x", "B": "y"}], {"InputType": "CSV"}, "\ufeffA,B\r\nx,y\r\n"),
        ([1], {}, "\ufeff[1]"),
        ([{"A": "x", "B": ""}], {"InputType": "CSV", "CSVDelimiter": "PIPE"}, "A|B\nx\n"),
        ([{"H": "1"}], {"InputType": "CSV", "CSVHeaderLocation": "GIVEN", "CSVHeaders": ["H"]}, "1\n"),
        ([1, 2], {"MaxItems": 2}, "[1, 2, 3]"),
    ],
)
def test_items_are_read_from_an_object(expected: Any, config: Any, content: str) -> None:
    services = Bucket(items=content)
    ran = execute(distributed(("P", passing()), ItemReader=reader(**config)), {"version": "v1"}, services)
    assert expected == ran.output
    assert "v1" == services.calls[0][1]["VersionId"]
    # Recorded on AWS: test_map_item_reader_base_json.
    assert {"length": 0} == ran.details("MapStateStarted")


def test_columns_come_in_the_order_of_a_hash_map() -> None:
    # Recorded on AWS: test_map_item_reader_csv_first_row_extra_fields (the column without a name is first).
    rows = "userId,movieId,rating,\n1,2,3.0,x\n"
    ran = execute(
        distributed(("P", passing()), ItemReader=reader(InputType="CSV")),
        {"version": "v"},
        Bucket(items=rows),
    )
    assert ["", "rating", "movieId", "userId"] == list(ran.output[0])


def test_items_may_be_the_objects_under_a_prefix() -> None:
    listing = {"Resource": "arn:aws:states:::s3:listObjectsV2", "Parameters": {"Bucket": "b"}}
    ran = execute(distributed(("P", passing(OutputPath="$.Key")), ItemReader=listing), services=Bucket())
    assert ["a", "b"] == ran.output


def test_items_that_cannot_be_read_fail_the_map_run() -> None:
    # Recorded on AWS: test_map_item_reader_json_no_json_list_object.
    ran = execute(
        distributed(("P", passing()), ItemReader=reader()), {"version": "v"}, Bucket(items='{"a": 1}')
    )
    assert ["MapRunStarted", "MapRunFailed", "MapStateFailed", "ExecutionFailed"] == ran.types[3:]
    assert ("States.ItemReaderFailed", "Attempting to map over non-iterable node.") == (ran.error, ran.cause)


def test_a_number_of_items_that_is_none_fails_before_the_map_run() -> None:
    # moto's engine: AWS looks at this before it looks at the sign of the number.
    definition = distributed(("P", passing()), ItemReader=reader(MaxItemsPath="$.n"))
    ran = execute(definition, {"version": "v", "n": "all"}, Bucket(items="[1]"))
    assert ["MapStateStarted", "ExecutionFailed"] == ran.types[-2:]
    assert str(ran.cause).endswith(
        'The MaxItemsPath field refers to value "all" which is not a valid integer: $.n'
    )


def test_a_column_is_not_lost_to_another_of_its_name() -> None:
    definition = distributed(("P", passing()), ItemReader=reader(InputType="CSV"))
    ran = execute(definition, {"version": "v"}, Bucket(items="A,B,A\n1,2,3\n"))
    assert ("States.ItemReaderFailed", "CSV headers cannot contain duplicates.") == (ran.error, ran.cause)


def test_compressed_objects_are_unpacked() -> None:
    body = gzip.compress(b"[1,2]")
    services = Services(s3_getObject=lambda _: {"Body": io.BytesIO(body)})
    reader = {"Resource": "arn:aws:states:::s3:getObject", "Parameters": {"Bucket": "b", "Key": "k"}}
    assert [1, 2] == execute(distributed(("P", passing()), ItemReader=reader), {}, services).output


def test_listed_objects_are_read_and_their_items_put_together() -> None:
    # [dg:input-output-itemreader]: Transformation LOAD_AND_FLATTEN.
    bodies = {"a.csv": b"x\n1\n2\n", "b.csv": b"x\n3\n", "c.csv": b"x\n4\n"}
    services = Services(
        s3_listObjectsV2=lambda _: {"Contents": [{"Key": "folder/"}, *({"Key": key} for key in bodies)]},
        s3_getObject=lambda given: {"Body": io.BytesIO(bodies[given["Key"]])},
    )
    config = {"Transformation": "LOAD_AND_FLATTEN", "InputType": "CSV", "MaxItems": 3}
    reader = {
        "Resource": "arn:aws:states:::s3:listObjectsV2",
        "Parameters": {"Bucket": "b"},
        "ReaderConfig": {**config, "CSVHeaderLocation": "FIRST_ROW"},
    }
    ran = execute(distributed(("P", passing()), ItemReader=reader), {}, services)
    assert [{"x": "1"}, {"x": "2"}, {"x": "3"}] == ran.output
    assert ["a.csv", "b.csv"] == [given["Key"] for given in services.called("s3:getObject")]


PAIRS = {"key.$": "$$.Map.Item.Key", "value.$": "$$.Map.Item.Value", "index.$": "$$.Map.Item.Index"}


def test_an_object_is_iterated_over_by_its_pairs() -> None:
    # [dg:input-output-itemspath]; without an ItemSelector measured on AWS: floci-io/floci#1588.
    given = {"all": {"a": {"x": 1}, "b": 2}}
    pairs = execute(distributed(("P", passing()), ItemsPath="$.all"), given)
    assert [{"Key": "a", "Value": {"x": 1}}, {"Key": "b", "Value": 2}] == pairs.output
    assert 2 == pairs.details("MapStateStarted")["length"]
    selected = execute(distributed(("P", passing()), ItemsPath="$.all", ItemSelector=PAIRS), given)
    assert [
        {"key": "a", "value": {"x": 1}, "index": 0},
        {"key": "b", "value": 2, "index": 1},
    ] == selected.output


def test_an_items_pointer_selects_an_object_too() -> None:
    # [dg:input-output-itemreader]
    states = distributed(("P", passing()), ItemReader=reader(ItemsPointer="/deep"), ItemSelector=PAIRS)
    ran = execute(states, {"version": "1"}, Bucket(items='{"deep": {"a": 5}}'))
    assert [{"key": "a", "value": 5, "index": 0}] == ran.output


@pytest.mark.parametrize(
    ("expected", "pointer"),
    [
        (1, "/a~1b"),
        (2, "/m~0n"),
        (3, "/~01"),  # ~0 comes last: no slash is made of it
        (4, "/"),
        (5, "/ "),
        (6, "/c%d"),
        (7, "/0"),
        (8, "/list/0"),
        (9, "/list/1/deep"),
    ],
)
def test_an_items_pointer_is_a_json_pointer(expected: int, pointer: str) -> None:
    # RFC 6901, sections 3 to 5.
    file = {"a/b": [1], "m~n": [2], "~1": [3], "": [4], " ": [5], "c%d": [6], "0": [7]}
    content = json.dumps(file | {"list": [[8], {"deep": [9]}]})
    ran = execute(
        distributed(("P", passing()), ItemReader=reader(ItemsPointer=pointer)),
        {"version": "v"},
        Bucket(items=content),
    )
    assert [expected] == ran.output


@pytest.mark.parametrize(
    "pointer", ["/nix", "/list/2", "/list/-", "/list/00", "/list/+0", "/list/a", "/list/0/0"]
)
def test_an_items_pointer_that_points_to_nothing_fails_the_map_run(pointer: str) -> None:
    # RFC 6901, section 4: no signs, no zeros in front, and `-` is the element after the last.
    ran = execute(
        distributed(("P", passing()), ItemReader=reader(ItemsPointer=pointer)),
        {"version": "v"},
        Bucket(items='{"list": [0, 1]}'),
    )
    assert ("States.ItemReaderFailed", f"The ItemsPointer {pointer} points to nothing") == (
        ran.error,
        ran.cause,
    )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"ItemsPointer": "list"}, "has to be a JSON pointer such as /items"),
        ({"ItemsPointer": "$.list"}, "has to be a JSON pointer such as /items"),
        ({"ItemsPointer": "/" + "x" * 1_999}, "of fewer than 2,000 characters"),
        ({"ItemsPointer": "/list", "InputType": "CSV"}, "selects in JSON, not in CSV"),
    ],
)
def test_what_is_no_pointer_is_refused_when_the_machine_is_created(config: Any, words: str) -> None:
    with pytest.raises(ApiError, match=words):
        execute(distributed(("P", passing()), ItemReader=reader(**config)), {"version": "v"}, Bucket())


def test_an_element_of_an_array_has_no_key() -> None:
    ran = execute(distributed(("P", passing()), ItemSelector=PAIRS), [1])
    assert "States.Runtime" == ran.error
    assert "$$.Map.Item.Key" in str(ran.cause)


def test_only_a_line_feed_ends_a_line_of_json() -> None:
    states = distributed(("P", passing()), ItemReader=reader(InputType="JSONL"))
    ran = execute(states, {"version": "1"}, Bucket(items='"a\u2028b"\r\n\n"c\u0085d"\n'))
    assert ["a\u2028b", "c\u0085d"] == ran.output


LARGE = "x" * 200_000
TWICE = {"one.$": "$$.Map.Item.Value", "two.$": "$$.Map.Item.Value"}


@pytest.mark.parametrize(
    "fields",
    [
        {"ItemSelector": TWICE},
        {"ItemBatcher": {"MaxItemsPerBatch": 1, "BatchInput": {"all.$": "$"}}},
        {"ItemReader": reader("large", InputType="JSONL")},
        {"ItemReader": reader("large", InputType="JSONL"), "ItemBatcher": {"MaxItemsPerBatch": 1}},
    ],
    ids="+".join,
)
def test_no_child_is_given_more_than_256_kib(fields: dict[str, Any]) -> None:
    given: Any = {"version": "1"} if "ItemReader" in fields else [LARGE]
    ran = execute(distributed(("P", passing()), **fields), given, Bucket(large=f'"{LARGE}{LARGE}"'))
    assert "States.DataLimitExceeded" == ran.error
    assert "MapRunFailed" in ran.types
