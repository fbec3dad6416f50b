"""The fan-out over slices that lie in S3, its children mocked: at our endpoint alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from trueup.local.aws import client, ministack

from .mocked import FOREIGN, Endpoint, Ran, definition, ended, mocks, own_endpoint, run
from .mocked_cases import ORDER, slice_input

pytestmark = pytest.mark.skipif(
    FOREIGN is not None,
    reason="SFN_ENDPOINT: Step Functions Local has no Distributed Map; what happens to a slice is tested",
)

BUCKET = "trueup"
SLICES = [{**ORDER["slice"], "sliceId": number} for number in range(3)]
FAN_OUT = "Work every slice"


@dataclass
class World:
    """An endpoint of ours, and the S3 that it reads from and writes to."""

    sfn: Endpoint
    s3: Any

    def play(self, case: str, slices: list[Any] | None = None) -> Ran:
        """Dispatch these slices, or some that cannot be read."""
        key, version = f"{case}/slices.json", "absent"
        if slices is not None:
            put = self.s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(slices))
            version = put["VersionId"]
            # A dispatch is read as it was when it was made.
            self.s3.put_object(Bucket=BUCKET, Key=key, Body="[]")
        given = slice_input("exit") | {
            "dispatch": {"bucket": BUCKET, "key": key, "versionId": version},
            "results": {"bucket": BUCKET, "prefix": f"{case}/map"},
            # One after the other: mocked answers are counted over all children.
            "maxConcurrency": 1,
        }
        return run(self.sfn, "partitions", case, given)

    def children(self, ran: Ran) -> list[Ran]:
        """The executions of the slices, in the order of the slices."""
        (run_,) = self.sfn.client.list_map_runs(executionArn=ran.arn)["mapRuns"]
        listed = self.sfn.client.list_executions(mapRunArn=run_["mapRunArn"])["executions"]
        children = [ended(self.sfn, one["executionArn"]) for one in listed]
        return sorted(children, key=lambda child: int(child.visits[0].given["order"]["slice"]["sliceId"]))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with ministack(["s3"]) as aws, own_endpoint({"s3": aws}) as sfn:
        s3 = client("s3", aws)
        s3.create_bucket(Bucket=BUCKET)
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        yield World(sfn, s3)


def test_slices_that_fail_or_find_the_run_closed_do_not_fail_the_fan_out(world: World) -> None:
    ran = world.play("SlicesEndInEveryWay", SLICES)
    assert ([FAN_OUT], "SUCCEEDED") == (ran.path, ran.status)
    ends = [(child.status, child.path[-1]) for child in world.children(ran)]
    assert [("SUCCEEDED", "Slice is done"), ("FAILED", "Slice has failed"),
            ("SUCCEEDED", "Run takes no more tasks")] == ends  # fmt: skip


def test_each_slice_is_handed_the_order_with_itself_in_it(world: World) -> None:
    children = world.children(world.play("SlicesEndInEveryWay", SLICES))
    expected = [slice_input("exit") | {"order": {**ORDER, "slice": one}} for one in SLICES]
    assert expected == [child.visits[0].given for child in children]


def test_results_go_to_s3_and_the_answer_only_points_there(world: World) -> None:
    ran = world.play("SlicesEndInEveryWay", SLICES)
    written = ran.output["ResultWriterDetails"]
    manifest = json.loads(world.s3.get_object(Bucket=BUCKET, Key=written["Key"])["Body"].read())
    assert {"SUCCEEDED", "FAILED"} <= {kind for kind, files in manifest["ResultFiles"].items() if files}


def test_a_fan_out_of_which_every_slice_fails_has_succeeded(world: World) -> None:
    ran = world.play("EverySliceFails", SLICES)
    assert "SUCCEEDED" == ran.status
    assert {"FAILED"} == {child.status for child in world.children(ran)}


def test_a_dispatch_that_cannot_be_read_fails_the_fan_out(world: World) -> None:
    ran = world.play("DispatchCannotBeRead")
    assert ("FAILED", "States.ItemReaderFailed") == (ran.status, ran.error)


def test_the_fan_out_is_all_that_these_cases_have_to_enter() -> None:
    assert {FAN_OUT} == set(definition("partitions")["States"])
    cases = {"SlicesEndInEveryWay", "EverySliceFails", "DispatchCannotBeRead"}
    assert cases == set(mocks()["StateMachines"]["partitions"]["TestCases"])
