"""Calls of CreateService and UpdateService, checked: what is kept of them, or AWS's words for why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trueup.local.ecs.errors import ApiError, invalid, not_implemented
from trueup.local.ecs.names import is_name
from trueup.local.ecs.services import Plan

Document = dict[str, Any]
Body = Mapping[str, Any]

LAUNCH = ("launchType", "capacityProviderStrategy", "networkConfiguration", "platformVersion")
"""Of these and the task definition a change makes a new deployment ([botocore ecs], UpdateService)."""
TAGGING = ("enableECSManagedTags", "propagateTags")
CREATE = (
    *("cluster", "serviceName", "taskDefinition", "desiredCount", "clientToken", *LAUNCH, *TAGGING, "tags"),
    *("deploymentConfiguration", "deploymentController", "schedulingStrategy", "availabilityZoneRebalancing"),
)
UPDATE = (
    *("cluster", "service", "taskDefinition", "desiredCount", *LAUNCH[1:], *TAGGING),
    *("deploymentConfiguration", "deploymentController", "forceNewDeployment"),
    "availabilityZoneRebalancing",
)
_ONLY = {
    "schedulingStrategy": "REPLICA",
    "availabilityZoneRebalancing": "DISABLED",
}
_CLIENT_TOKEN = re.compile(r"[!-~]{1,36}")
_DEPLOYING = ("minimumHealthyPercent", "maximumPercent", "deploymentCircuitBreaker", "strategy")
_BREAKER = ("enable", "rollback")


def check_values(body: Body) -> None:
    """Refuse what would be ignored. Raises ApiError."""
    for name, supported in _ONLY.items():
        if body.get(name) not in (None, supported):
            raise not_implemented(f"{name} {body[name]}", supported)
    controller = (body.get("deploymentController") or {}).get("type", "ECS")
    if controller != "ECS":
        raise not_implemented(f"The deployment controller {controller}", "ECS")


def check_token(body: Body) -> None:
    """Up to 36 characters in the range of 33 to 126 ([botocore ecs], CreateService). Raises ApiError."""
    token = body.get("clientToken")
    if token is not None and not _CLIENT_TOKEN.fullmatch(token):
        raise invalid("Invalid clientToken: up to 36 characters in the range of 33 to 126.")


def service_name(body: Body) -> str:
    """The name for a new service. Raises ApiError."""
    name = body.get("serviceName") or ""
    if not is_name(name):
        raise invalid("serviceName has letters, digits, - and _, at most 255.")
    return str(name)


def desired_count(body: Body) -> int:
    """How many tasks shall run. Raises ApiError."""
    count = body.get("desiredCount")
    if count is None:
        raise invalid("desiredCount can not be blank for a service with scheduling strategy REPLICA.")
    if count < 0:
        raise invalid("desiredCount must be 0 or greater.")
    return int(count)


def plan_of(configuration: Body) -> Plan:
    """How deployments go. Raises ApiError."""
    _only("A deploymentConfiguration", configuration, _DEPLOYING)
    if configuration.get("strategy") not in (None, "ROLLING"):
        raise not_implemented(f"The deployment strategy {configuration['strategy']}", "ROLLING")
    breaker = configuration.get("deploymentCircuitBreaker") or {}
    _only("A deploymentCircuitBreaker", breaker, _BREAKER)
    least = configuration.get("minimumHealthyPercent", 100)
    most = configuration.get("maximumPercent", 200)
    if least == most == 100:
        raise invalid(
            "Both maximumPercent and minimumHealthyPercent cannot be 100 as this will block deployments."
        )
    if not 0 <= least <= 100 <= most:
        raise invalid("minimumHealthyPercent must be between 0 and 100, maximumPercent at least 100.")
    return Plan(
        minimum_healthy_percent=least,
        maximum_percent=most,
        breaker=bool(breaker.get("enable")),
        rollback=bool(breaker.get("rollback")),
    )


def told_plan(plan: Plan) -> Document:
    """A plan as DescribeServices tells it."""
    return {
        "deploymentCircuitBreaker": {"enable": plan.breaker, "rollback": plan.rollback},
        "maximumPercent": plan.maximum_percent,
        "minimumHealthyPercent": plan.minimum_healthy_percent,
        "strategy": "ROLLING",
    }


def run_call(
    name: str, cluster: str, given: Body, definition: str, tags: list[Document], by: str
) -> Document:
    """The call of RunTask that starts a task of a service."""
    propagate = given.get("propagateTags") or "NONE"
    call = {key: given[key] for key in LAUNCH if given.get(key)}
    return {
        **call,
        "cluster": cluster,
        "taskDefinition": definition,
        "group": f"service:{name}",
        "startedBy": by,
        "enableECSManagedTags": bool(given.get("enableECSManagedTags")),
        "propagateTags": "TASK_DEFINITION" if propagate == "TASK_DEFINITION" else "NONE",
        "tags": tags if propagate == "SERVICE" else [],
    }


def definition_named(body: Body) -> str:
    """The task definition that a new service names. Raises ApiError."""
    if not body.get("taskDefinition"):
        raise ApiError("ClientException", "TaskDefinition can not be blank.")
    return str(body["taskDefinition"])


def _only(what: str, given: Body, supported: tuple[str, ...]) -> None:
    beyond = sorted(name for name in given.keys() - set(supported) if given[name])
    if beyond:
        raise not_implemented(f"{what} with {', '.join(beyond)}", ", ".join(supported))
