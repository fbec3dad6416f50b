"""Distributed Map: children of their own, S3 on both sides, limits, changes under way, redriving."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from trueup.local.stepfunctions.integrations.port import ServiceFailure

from .harness import Services, World, execute, machine, passing, play, ran

FAIL = {"Type": "Fail", "Error": "Bad", "Cause": "luck"}
IS_BAD = {
    "Type": "Choice",
    "Choices": [{"Variable": "$.bad", "IsPresent": True, "Next": "F"}],
    "Default": "P",
}
SOME_FAIL = (("C", IS_BAD), ("P", passing(End=True)), ("F", FAIL))
BAD, GOOD = {"bad": 1}, {"good": 1}


def distributed(*states: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    processor = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **machine(*states)}
    return machine(("M", {"Type": "Map", "ItemProcessor": processor, "Label": "L", **fields}))


class Bucket(Services):
    """S3 with its objects at hand."""

    def __init__(self, **files: str) -> None:
        self.files = dict(files)
        super().__init__(s3_getObject=self._get, s3_putObject=self._put, s3_listObjectsV2=self._list)

    def _get(self, given: Any) -> Any:
        return {"Body": io.BytesIO(self.files[given["Key"]].encode())}

    def _put(self, given: Any) -> Any:
        self.files[given["Key"]] = given["Body"]
        return {}

    def _list(self, given: Any) -> Any:
        first = given["ContinuationToken"] is None
        entry = {
            "ETag": '"e"',
            "Key": "a" if first else "b",
            "Size": 3,
            "LastModified": datetime(2026, 1, 1, tzinfo=UTC),
        }
        return {"Contents": [entry], **({"NextContinuationToken": "more"} if first else {})}


def reader(key: str = "items", **config: Any) -> dict[str, Any]:
    return {
        "Resource": "arn:aws:states:::s3:getObject",
        "Parameters": {"Bucket": "b", "Key": key, "VersionId.$": "$.version"},
        "ReaderConfig": {"InputType": "JSON", **config},
    }


def test_children_are_executions_with_histories_and_names_of_their_own() -> None:
    async def scene(world: World) -> None:
        parent = world.start(world.create(distributed(("P", passing()))), [1, 2])
        await parent.ended()
        # Recorded on AWS: test_map_state_config_distributed_item_selector.
        assert [
            "MapStateStarted",
            "MapRunStarted",
            "MapRunSucceeded",
            "MapStateSucceeded",
            "MapStateExited",
        ] == (ran(parent).types[2:7])
        run_arn = world.api("ListMapRuns", executionArn=parent.arn)["mapRuns"][0]["mapRunArn"]
        assert ":mapRun:m/L:" in run_arn
        children = world.api("ListExecutions", mapRunArn=run_arn)["executions"]
        assert 2 == len(children)
        assert ":execution:m/L:" in children[0]["executionArn"]
        assert (
            "ExecutionSucceeded"
            == world.api("GetExecutionHistory", executionArn=children[0]["executionArn"])["events"][-1][
                "type"
            ]
        )
        assert 1 == len(world.api("ListExecutions", stateMachineArn=parent.origin.machine_arn)["executions"])

    play(scene)


def test_outputs_come_in_the_order_of_the_items() -> None:
    wait = {"Type": "Wait", "SecondsPath": "$"}
    assert [3, 1, 2] == execute(distributed(("W", wait)), [3, 1, 2]).output


def test_an_item_selector_makes_the_children_s_input() -> None:
    ran = execute(distributed(("P", passing()), ItemSelector={"i.$": "$$.Map.Item.Index", "all.$": "$"}), [7])
    assert [{"i": 0, "all": [7]}] == ran.output


def test_children_do_not_see_their_parent_s_variables() -> None:
    # aws-facts section 1.3.
    definition = distributed(("P", passing(Parameters={"v.$": "$v"})))
    definition["States"] = {"S": passing(Assign={"v": 1}, Next="M"), **definition["States"]}
    assert "FAILED" == execute({**definition, "StartAt": "S"}, [1]).status


@pytest.mark.parametrize(
    ("expected", "config", "content"),
    [
        ([{"a": 1}, 2], {}, '[{"a": 1}, 2]'),
        ([5], {"ItemsPointer": "/deep/list"}, '{"deep": {"list": [5]}}'),
        ([1, {"b": 2}], {"InputType": "JSONL"}, '1\n{"b": 2}\n\n'),
        ([{"A": "x", "B": "y"}], {"InputType": "CSV"}, "A,B\nx,y\n"),
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


def test_a_column_is_not_lost_to_another_of_its_name() -> None:
    definition = distributed(("P", passing()), ItemReader=reader(InputType="CSV"))
    ran = execute(definition, {"version": "v"}, Bucket(items="A,B,A\n1,2,3\n"))
    assert ("States.ItemReaderFailed", "CSV headers cannot contain duplicates.") == (ran.error, ran.cause)


def test_items_are_batched() -> None:
    # aws-facts section 1.3.
    batcher = {"MaxItemsPerBatch": 2, "BatchInput": {"n.$": "$.n"}}
    ran = execute(
        distributed(("P", passing()), ItemsPath="$.l", ItemBatcher=batcher), {"n": 9, "l": [1, 2, 3]}
    )
    assert [{"BatchInput": {"n": 9}, "Items": [1, 2]}, {"BatchInput": {"n": 9}, "Items": [3]}] == ran.output


def test_a_batch_with_its_common_input_stays_within_its_bytes() -> None:
    # [dg:input-output-itembatcher]
    batcher = {"MaxInputBytesPerBatch": 60, "BatchInput": {"common": "x" * 10}}
    ran = execute(distributed(("P", passing()), ItemBatcher=batcher), ["aaaa"] * 5)
    assert [1, 1, 1, 1, 1] == [len(batch["Items"]) for batch in ran.output]
    without = {"MaxInputBytesPerBatch": 60}
    ran = execute(distributed(("P", passing()), ItemBatcher=without), ["aaaa"] * 9)
    assert [6, 3] == [len(batch["Items"]) for batch in ran.output]


def test_max_concurrency_bounds_the_children() -> None:
    slow = distributed(("W", {"Type": "Wait", "Seconds": 10}), MaxConcurrencyPath="$.n", ItemsPath="$.l")
    assert 40 == execute(slow, {"n": 3, "l": [0] * 10}).seconds


def test_any_failure_fails_the_run_by_default_and_ends_the_other_children() -> None:
    states = (("C", IS_BAD), ("P", {"Type": "Wait", "Seconds": 99, "End": True}), ("F", FAIL))

    async def scene(world: World) -> Any:
        parent = world.start(world.create(distributed(*states)), [GOOD, BAD])
        await parent.ended()
        return ran(parent), [child.status for child in parent.map_runs[0].children if child]

    ended, children = play(scene)
    assert ("States.ExceedToleratedFailureThreshold", 0) == (ended.error, ended.seconds)
    assert ["ABORTED", "FAILED"] == children
    assert ["MapRunFailed", "MapStateFailed", "ExecutionFailed"] == ended.types[-3:]


@pytest.mark.parametrize(
    ("expected", "tolerated"),
    [
        ("SUCCEEDED", {"ToleratedFailurePercentage": 100}),
        ("SUCCEEDED", {"ToleratedFailurePercentage": 50}),
        ("FAILED", {"ToleratedFailurePercentage": 49.9}),
        ("SUCCEEDED", {"ToleratedFailureCount": 2}),
        ("FAILED", {"ToleratedFailureCount": 1}),
        # Either one, when both are given.
        ("FAILED", {"ToleratedFailureCount": 1, "ToleratedFailurePercentage": 100}),
        ("SUCCEEDED", {"ToleratedFailurePercentagePath": "$.p"}),
    ],
)
def test_failures_are_tolerated_up_to_a_limit(expected: str, tolerated: dict[str, Any]) -> None:
    items = [GOOD, BAD, GOOD, BAD]
    ran = execute(distributed(*SOME_FAIL, ItemsPath="$.l", **tolerated), {"l": items, "p": 60})
    assert expected == ran.status


def test_failures_are_counted_on_items() -> None:
    # aws-facts section 1.3: a batch that fails counts with all its items.
    states = (("F", FAIL),)
    ran = execute(
        distributed(*states, ItemBatcher={"MaxItemsPerBatch": 3}, ToleratedFailureCount=2), [1, 2, 3]
    )
    assert "FAILED" == ran.status


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ('The ToleratedFailureCountPath field refers to value "{}" which is not a valid integer: $.v',
         "ToleratedFailureCountPath", {}),
        ("ToleratedFailurePercentage must be between 0 and 100.", "ToleratedFailurePercentagePath", 100.1),
    ],
)  # fmt: skip
def test_a_limit_that_is_none_fails_before_the_map_run(said: str, field: str, value: Any) -> None:
    # Recorded on AWS: test_map_state_tolerated_failure_count_path, …_percentage_path.
    ran = execute(distributed(("P", passing()), ItemsPath="$.l", **{field: "$.v"}), {"l": [1], "v": value})
    assert ["MapStateStarted", "ExecutionFailed"] == ran.types[-2:]
    assert str(ran.cause).endswith(said)


WRITER = {"Resource": "arn:aws:states:::s3:putObject", "Parameters": {"Bucket": "b", "Prefix": "out"}}


def test_a_result_writer_leaves_files_and_a_manifest() -> None:
    # Recorded on AWS: test_map_state_result_writer.
    services = Bucket()
    ran = execute(
        distributed(*SOME_FAIL, ResultWriter=WRITER, ToleratedFailurePercentage=100), [GOOD, BAD], services
    )
    key = ran.output["ResultWriterDetails"]["Key"]
    folder = "out/" + ran.output["MapRunArn"].rpartition(":")[2]
    assert f"{folder}/manifest.json" == key
    manifest = json.loads(services.files[key])
    assert {"FAILED": 1, "PENDING": 0, "SUCCEEDED": 1} == {
        n: len(f) for n, f in manifest["ResultFiles"].items()
    }
    failed = json.loads(services.files[f"{folder}/FAILED_0.json"])[0]
    assert ("Bad", "luck", '{"bad":1}') == (failed["Error"], failed["Cause"], failed["Input"])
    assert (
        len(services.files[f"{folder}/SUCCEEDED_0.json"]) == manifest["ResultFiles"]["SUCCEEDED"][0]["Size"]
    )


def test_results_are_written_also_when_the_run_fails_with_what_was_never_started() -> None:
    services = Bucket()
    ran = execute(distributed(*SOME_FAIL, ResultWriter=WRITER, MaxConcurrency=1), [BAD, GOOD], services)
    assert "FAILED" == ran.status
    assert {"FAILED_0.json", "PENDING_0.json", "manifest.json"} == {
        key.rpartition("/")[2] for key in services.files
    }


def test_results_over_256_kib_need_a_writer() -> None:
    big = passing(Result="x" * 100_000)
    assert "States.DataLimitExceeded" == execute(distributed(("P", big)), [1, 2, 3]).error
    services = Bucket()
    assert "SUCCEEDED" == execute(distributed(("P", big), ResultWriter=WRITER), [1, 2, 3], services).status


def test_update_map_run_acts_while_it_runs() -> None:
    async def scene(world: World) -> Any:
        slow = distributed(("W", {"Type": "Wait", "Seconds": 10}), MaxConcurrency=1)
        parent = world.start(world.create(slow), [0] * 10)
        await asyncio.sleep(5)
        arn = parent.map_runs[0].arn
        counts = world.api("DescribeMapRun", mapRunArn=arn)["executionCounts"]
        world.api("UpdateMapRun", mapRunArn=arn, maxConcurrency=10)
        await parent.ended()
        return counts, ran(parent).seconds

    counts, seconds = play(scene)
    assert (9, 1, 10) == (counts["pending"], counts["running"], counts["total"])
    assert 15 == round(seconds)


def test_stopping_the_parent_stops_the_children() -> None:
    async def scene(world: World) -> Any:
        parent = world.start(world.create(distributed(("W", {"Type": "Wait", "Seconds": 99}))), [1, 2])
        await asyncio.sleep(1)
        parent.stop("Mine", "so")
        await asyncio.sleep(1)
        run = parent.map_runs[0]
        return parent.status, run.status, {child.status for child in run.children if child}

    assert ("ABORTED", "ABORTED", {"ABORTED"}) == play(scene)


def test_redriving_the_parent_redrives_the_children_that_did_not_succeed() -> None:
    # aws-facts section 1.4.
    broken = [True]

    def get(given: Any) -> Any:
        if broken[0] and given["Key"]["id"]["S"] == "2":
            raise ServiceFailure("InternalServerError", "no", status=500)
        return {}

    task = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:dynamodb:getItem",
            "Parameters": {"TableName": "t", "Key": {"id": {"S.$": "$"}}}}  # fmt: skip

    async def scene(world: World) -> None:
        parent = world.start(world.create(distributed(("P", passing()), ("T", task))), ["1", "2", "3"])
        await parent.ended()
        assert "FAILED" == parent.status
        broken[0] = False
        world.api("RedriveExecution", executionArn=parent.arn)
        await parent.ended()
        ended = ran(parent)
        assert ("SUCCEEDED", 1) == (ended.status, parent.redrive_count)
        assert ["ExecutionRedriven", "MapStateStarted", "MapRunRedriven"] == ended.types[
            ended.types.index("ExecutionRedriven") :
        ][:3]
        redriven = [child for child in parent.map_runs[0].children if child and child.redrive_count]
        assert 1 == sum(child.input.value == "2" for child in redriven)
        again = [event["type"] for event in ran(redriven[0]).events]
        assert 1 == again.count("PassStateEntered")

    play(scene, Services(dynamodb_getItem=get))


def test_thousands_of_children_one_after_the_other_are_no_recursion() -> None:
    assert 3_000 == len(execute(distributed(("P", passing()), MaxConcurrency=1), [0] * 3_000).output)


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
    # [dg:input-output-itemspath]
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
