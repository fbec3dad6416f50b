"""What RunTask refuses, in AWS's words, and what it makes of a call that it takes.

Where a test names no source: ours, for definitions of another ECS; all else is [botocore ecs] RunTask.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.local.ecs import run_request
from trueup.local.ecs.definitions import check_size
from trueup.local.ecs.errors import ApiError

from .ecs_cases import Case, on_a_loop

SUBNETS = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}


def read(case: Case, **call: Any) -> run_request.RunRequest:
    body = {"taskDefinition": "job", **call}
    return run_request.read(body, case.fargate.clusters, case.fargate.definitions)


def refused(case: Case, **call: Any) -> tuple[str, str]:
    with pytest.raises(ApiError) as refusal:
        read(case, **call)
    return refusal.value.name, refusal.value.message


def overrides_of(characters: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "containerOverrides": [{"name": "main", "environment": [{"name": "A", "value": ""}]}]
    }
    empty = len(json.dumps(made, separators=(",", ":")))
    made["containerOverrides"][0]["environment"][0]["value"] = "x" * (characters - empty)
    return made


def test_overrides_have_at_most_8192_characters_with_their_json() -> None:
    """aws-facts section 3, row Overrides; the wording: convox/rack#1906."""
    case = Case()
    assert "A" in read(case, overrides=overrides_of(8192)).environment
    assert ("InvalidParameterException", "Container Overrides length must be at most 8192") == refused(
        case, overrides=overrides_of(8193)
    )


@pytest.mark.parametrize(
    ("call", "name", "words"),
    [
        ({"cluster": "nowhere"}, "ClusterNotFoundException", "Cluster not found."),
        ({"taskDefinition": "nothing"}, "ClientException", "TaskDefinition not found."),
        ({"taskDefinition": "job:7"}, "ClientException", "TaskDefinition not found."),
        ({"count": 11}, "InvalidParameterException", "Count must be between 1 and 10"),
        ({"count": 0}, "InvalidParameterException", "Count must be between 1 and 10"),
        ({"startedBy": "a b"}, "InvalidParameterException", "Invalid startedBy"),
        ({"startedBy": "x" * 129}, "InvalidParameterException", "Invalid startedBy"),
        ({"clientToken": "x" * 65}, "InvalidParameterException", "Invalid clientToken"),
        ({"propagateTags": "SERVICE"}, "InvalidParameterException", "propagateTags cannot be SERVICE"),
        (
            {"networkConfiguration": SUBNETS},
            "InvalidParameterException",
            "Network Configuration is not valid",
        ),
        ({"launchType": "EC2"}, "UnsupportedFeatureException", "Launch type EC2 is not implemented"),
        ({"platformVersion": "1.3.0"}, "UnsupportedFeatureException", "Platform version 1.3.0 is not"),
        (
            {"overrides": {"containerOverrides": [{"name": "other"}]}},
            "InvalidParameterException",
            "Override for container named other is not a container in the TaskDefinition.",
        ),
        (
            {"capacityProviderStrategy": [{"capacityProvider": "FARGATE_SPOT"}]},
            "InvalidParameterException",
            "The specified capacity provider strategy cannot contain a capacity provider that is not",
        ),
    ],
)
def test_a_call_that_starts_nothing_says_why(call: dict[str, Any], name: str, words: str) -> None:
    """[botocore ecs] RunTask, and the threads named in run_request.py."""
    told = refused(Case(), **call)
    assert name == told[0]
    assert told[1].startswith(words)


def with_a_vpc() -> Case:
    """A Fargate whose definition `vpc` is for awsvpc."""
    case = Case()
    main = {"name": "main", "image": "app"}
    case.fargate.definitions.register(
        {
            "family": "vpc",
            "cpu": "256",
            "memory": "512",
            "networkMode": "awsvpc",
            "requiresCompatibilities": ["FARGATE"],
            "containerDefinitions": [main],
        },
        0,
    )
    return case


def test_a_task_in_a_vpc_needs_a_network_configuration() -> None:
    """API reference, RunTask, networkConfiguration; aws-actions/amazon-ecs-deploy-task-definition#802."""
    case = with_a_vpc()
    assert "subnet-1" == read(case, taskDefinition="vpc", networkConfiguration=SUBNETS).subnet
    assert (
        "InvalidParameterException",
        "Network Configuration must be provided when networkMode 'awsvpc' is specified.",
    ) == refused(case, taskDefinition="vpc")


@on_a_loop
async def test_the_subnet_that_a_call_names_is_told_back() -> None:
    """[botocore ecs] Task.attachments. There are no networks here."""
    case = with_a_vpc()
    await case.run(taskDefinition="vpc", networkConfiguration=SUBNETS)
    (interface,) = case.events[-1]["detail"]["attachments"]
    assert {"name": "subnetId", "value": "subnet-1"} in interface["details"]


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({}, True),
        ({"networkMode": "bridge"}, False),
        ({"cpu": None}, False),
        ({"memory": "3072"}, False),
    ],
)
def test_a_definition_fits_fargate_or_cannot_be_run_there(given: dict[str, str | None], fits: bool) -> None:
    """[botocore ecs] TaskDefinition, compatibilities; the wording: aws/aws-cli#3983."""
    case = Case()
    sound = {"family": "fit", "networkMode": "awsvpc", "cpu": "256", "memory": "512"}
    body = {name: value for name, value in {**sound, **given}.items() if value is not None}
    containers = [{"name": "main", "image": "app"}]
    made = case.fargate.definitions.register({**body, "containerDefinitions": containers}, 0)
    assert (["EC2", "FARGATE"] if fits else ["EC2"]) == made.document["compatibilities"]
    call = {"taskDefinition": "fit", "launchType": "FARGATE", "networkConfiguration": SUBNETS}
    if fits:
        assert "fit" == read(case, **call).definition.family
        overrides = {"cpu": "256", "memory": "3072"}
        expected = ("ClientException", "No Fargate configuration exists for given values.")
        assert expected == refused(case, **call, overrides=overrides)
    else:
        words = "Task definition does not support launch_type FARGATE."
        size = {"overrides": {"cpu": "256", "memory": "512"}}
        network = {} if "networkMode" in given else {"networkConfiguration": SUBNETS}
        told = refused(case, **{"taskDefinition": "fit", "launchType": "FARGATE", **size, **network})
        assert ("InvalidParameterException", words) == told


@pytest.mark.parametrize(
    ("cpu", "least", "most", "step"),
    [
        (512, 1, 4, 1),
        (1024, 2, 8, 1),
        (2048, 4, 16, 1),
        (4096, 8, 30, 1),
        (8192, 16, 60, 4),
        (16384, 32, 120, 8),
    ],
)
def test_fargate_has_so_much_memory_for_so_much_cpu(cpu: int, least: int, most: int, step: int) -> None:
    """Developer guide, "Task CPU and memory" of Fargate, in GiB."""
    there = [gib for gib in range(1, 150) if has_size(cpu, gib * 1024)]
    assert list(range(least, most + 1, step)) == there
    assert not any(has_size(cpu, gib * 1024 + 512) for gib in range(150))


def test_a_quarter_of_a_cpu_has_three_sizes_of_memory() -> None:
    """The same page: 512 MiB, 1 GB, 2 GB, and nothing between."""
    assert [512, 1024, 2048] == [mib for mib in range(0, 4096, 128) if has_size(256, mib)]


def has_size(cpu: int, mib: int) -> bool:
    try:
        check_size(cpu, mib)
    except ApiError:
        return False
    return True


def test_a_call_that_names_no_launch_type_runs_on_fargate() -> None:
    """On AWS it runs on instances, which there are none of here (API reference, RunTask, launchType)."""
    assert "job" == read(Case()).definition.family


def test_an_inactive_definition_cannot_be_run_and_its_family_runs_the_latest_active_one() -> None:
    """aws-facts section 2.2; the wording with RunTask: DefangLabs/defang#775."""
    case = Case()
    case.register()
    case.fargate.definitions.deregister("job:2", 0)
    assert 1 == read(case).definition.revision
    assert ("InvalidParameterException", "TaskDefinition is inactive") == refused(
        case, taskDefinition="job:2"
    )
    case.register()
    assert 3 == read(case).definition.revision


def test_a_definition_is_found_by_family_revision_and_arn() -> None:
    """API reference, RunTask, taskDefinition."""
    case = Case()
    arn = "arn:aws:ecs:us-east-1:000000000000:task-definition/job:1"
    assert [arn] * 3 == [read(case, taskDefinition=name).definition.arn for name in ("job", "job:1", arn)]


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        ("256", "512", ("256", "512")),
        ("1 vCPU", "2 GB", ("1024", "2048")),
        (".5 vcpu", "1GB", ("512", "1024")),
    ],
)
def test_sizes_are_kept_in_cpu_units_and_mib(cpu: str, memory: str, expected: tuple[str, str]) -> None:
    """API reference, RegisterTaskDefinition, cpu and memory."""
    case = Case()
    containers = [{"name": "main", "image": "app"}]
    given = {"family": "sized", "cpu": cpu, "memory": memory, "containerDefinitions": containers}
    document = case.fargate.definitions.register(given, 0).document
    assert expected == (document["cpu"], document["memory"])


def test_a_definition_that_is_taken_over_keeps_its_revision() -> None:
    case = Case()
    described = dict(case.fargate.definitions.describe("job").document) | {"revision": 7, "family": "other"}
    case.fargate.definitions.take_over(described, [{"key": "k", "value": "v"}])
    assert 7 == read(case, taskDefinition="other").definition.revision
    case.register("other")
    assert 8 == read(case, taskDefinition="other").definition.revision


def test_step_functions_may_start_tasks_in_its_own_name() -> None:
    """aws-facts section 6.5: "StartedBy": "AWS Step Functions"."""
    assert "AWS Step Functions" == read(Case(), startedBy="AWS Step Functions").started_by


def test_the_group_is_the_family_unless_it_is_given_and_sizes_can_be_overridden() -> None:
    """aws-facts section 3, row tags, group; API reference, TaskOverride."""
    case = Case()
    assert ("family:job", "256") == (read(case).group, read(case).cpu)
    other = read(case, group="nightly", overrides={"cpu": "1024", "memory": "2048"})
    assert ("nightly", "1024", "2048") == (other.group, other.cpu, other.memory)


def test_tags_are_the_calls_own_and_the_definitions_where_they_are_propagated() -> None:
    """API reference, RunTask, propagateTags and tags."""
    case = Case()
    case.fargate.definitions.describe("job").tags = [{"key": "a", "value": "1"}, {"key": "b", "value": "1"}]
    own = [{"key": "b", "value": "2"}]
    assert own == read(case, tags=own).tags
    assert [{"key": "a", "value": "1"}, *own] == read(case, tags=own, propagateTags="TASK_DEFINITION").tags
    many = [{"key": str(number), "value": ""} for number in range(51)]
    assert "InvalidParameterException" == refused(case, tags=many)[0]


@on_a_loop
async def test_a_client_token_starts_its_tasks_once() -> None:
    """aws-facts section 3, row clientToken; API reference, RunTask, ConflictException."""
    case = Case()
    first = await case.run(clientToken="t")
    assert first is await case.run(clientToken="t")
    with pytest.raises(ApiError) as conflict:
        case.fargate.run({"taskDefinition": "job", "clientToken": "t", "count": 2})
    assert ("ConflictException", {"resourceIds": [first.arn]}) == (conflict.value.name, conflict.value.more)
    await case.fargate.close()


def test_the_first_provider_of_a_strategy_has_all_the_weight() -> None:
    """API reference, CapacityProviderStrategyItem; the choice is ours."""
    case = Case()
    case.fargate.clusters.create("spot", capacity_providers=["FARGATE", "FARGATE_SPOT"])
    strategy = [{"capacityProvider": name, "weight": 1} for name in ("FARGATE_SPOT", "FARGATE")]
    assert "FARGATE_SPOT" == read(case, cluster="spot", capacityProviderStrategy=strategy).capacity_provider


@pytest.mark.parametrize(
    ("cpu", "memory", "fits"),
    [("256", "512", True), ("256", "4096", False), ("1024", "1024", False), ("16384", "122880", True)],
)
def test_fargate_has_certain_pairs_of_cpu_and_memory(cpu: str, memory: str, fits: bool) -> None:
    """Task CPU and memory of Fargate; Invalid CPU or memory value specified."""
    given: dict[str, Any] = {"family": "sized", "cpu": cpu, "memory": memory, "networkMode": "awsvpc"}
    given |= {"requiresCompatibilities": ["FARGATE"], "containerDefinitions": [{"name": "a", "image": "b"}]}
    if fits:
        assert Case().fargate.definitions.register(given, 0).active
        return
    with pytest.raises(ApiError, match=r"No Fargate configuration exists for given values\.") as refusal:
        Case().fargate.definitions.register(given, 0)
    assert "ClientException" == refusal.value.name
