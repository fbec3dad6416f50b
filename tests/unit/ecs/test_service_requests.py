"""Requests for services that are refused, and those that come twice.

Sources are pages of the ECS API reference, or [botocore ecs] by shape.
"""

from __future__ import annotations

from typing import Any

import pytest

from trueup.local.ecs.errors import ApiError

from .ecs_cases import on_a_loop
from .service_cases import ServiceCase

SUBNETS = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}


@on_a_loop
async def test_the_same_request_again_is_the_same_service_and_another_one_is_refused() -> None:
    """ "Creation of service was not idempotent.": the words that others stumble over."""
    case = ServiceCase()
    arn = (await case.create(1))["serviceArn"]
    assert arn == (await case.create(1))["serviceArn"]
    with pytest.raises(ApiError, match=r"Creation of service was not idempotent\.") as refusal:
        case.api("CreateService", serviceName="work", taskDefinition="job", desiredCount=2)
    assert "InvalidParameterException" == refusal.value.name
    await case.fargate.close()


@pytest.mark.parametrize(
    ("call", "name", "words"),
    [
        ({"serviceName": "a b"}, "InvalidParameterException", "serviceName has letters"),
        ({"taskDefinition": None}, "ClientException", "TaskDefinition can not be blank."),
        ({"taskDefinition": "nothing"}, "ClientException", "TaskDefinition not found."),
        ({"desiredCount": None}, "InvalidParameterException", "desiredCount can not be blank"),
        ({"desiredCount": -1}, "InvalidParameterException", "desiredCount must be 0 or greater."),
        ({"cluster": "nowhere"}, "ClusterNotFoundException", "Cluster not found."),
        ({"networkConfiguration": SUBNETS}, "InvalidParameterException", "Network Configuration is not"),
        (
            {"deploymentConfiguration": {"minimumHealthyPercent": 100, "maximumPercent": 100}},
            "InvalidParameterException",
            "Both maximumPercent and minimumHealthyPercent cannot be 100 as this will block deployments.",
        ),
        ({"launchType": "EC2"}, "UnsupportedFeatureException", "Launch type EC2 is not implemented"),
        ({"schedulingStrategy": "DAEMON"}, "UnsupportedFeatureException", "schedulingStrategy DAEMON"),
        ({"loadBalancers": [{}]}, "UnsupportedFeatureException", "CreateService with loadBalancers"),
        ({"desiredCount": "2"}, "SerializationException", "STRING_VALUE cannot be converted to Integer"),
        ({"launchType": "MOON"}, "InvalidParameterException", "launchType must be one of EC2, FARGATE"),
        (
            {"deploymentController": {"type": "EXTERNAL"}},
            "UnsupportedFeatureException",
            "The deployment controller EXTERNAL",
        ),
        (
            {"deploymentConfiguration": {"strategy": "BLUE_GREEN"}},
            "UnsupportedFeatureException",
            "The deployment strategy BLUE_GREEN",
        ),
        (
            {"deploymentConfiguration": {"alarms": {"alarmNames": [], "rollback": False, "enable": True}}},
            "UnsupportedFeatureException",
            "A deploymentConfiguration with alarms",
        ),
    ],
)
def test_a_service_that_is_not_created_says_why(call: dict[str, Any], name: str, words: str) -> None:
    """[botocore ecs] CreateService, and the threads named in service_request.py."""
    case = ServiceCase()
    body = {"serviceName": "work", "taskDefinition": "job", "desiredCount": 1, **call}
    with pytest.raises(ApiError) as refusal:
        case.api("CreateService", **{key: value for key, value in body.items() if value is not None})
    assert name == refusal.value.name
    assert refusal.value.message.startswith(words)
    assert [] == case.api("ListServices")["serviceArns"]


@pytest.mark.parametrize("operation", ["UpdateService", "DeleteService"])
def test_an_unknown_service_is_not_found(operation: str) -> None:
    """[botocore ecs] ServiceNotFoundException; DescribeServices tells it as a failure."""
    case = ServiceCase()
    with pytest.raises(ApiError, match=r"Service not found\.") as refusal:
        case.api(operation, service="never")
    assert "ServiceNotFoundException" == refusal.value.name
    arn = "arn:aws:ecs:us-east-1:000000000000:service/default/never"
    answer = case.api("DescribeServices", services=["never"])
    assert ([], [{"arn": arn, "reason": "MISSING"}]) == (answer["services"], answer["failures"])
