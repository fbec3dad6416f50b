"""Operations on services."""

from __future__ import annotations

from typing import Any

from trueup.local.ecs.api.requests import Answer, Body, page, required
from trueup.local.ecs.errors import invalid
from trueup.local.ecs.fargate import Fargate
from trueup.local.ecs.service_describing import describe_service
from trueup.local.ecs.services import ServiceStatus

MAX_DESCRIBED = 10


def create(fargate: Fargate, body: Body) -> Answer:
    """CreateService: its answer tells of no task yet."""
    return {"service": describe_service(fargate.services.create(body), fargate.place, tags=True)}


def update(fargate: Fargate, body: Body) -> Answer:
    """UpdateService."""
    required(body, "service")
    return {"service": describe_service(fargate.services.update(body), fargate.place)}


def delete(fargate: Fargate, body: Body) -> Answer:
    """DeleteService."""
    cluster = fargate.clusters.find(body.get("cluster")).name
    name = required(body, "service")
    ended = fargate.services.delete(cluster, name, force=bool(body.get("force")))
    return {"service": describe_service(ended, fargate.place)}


def describe_all(fargate: Fargate, body: Body) -> Answer:
    """DescribeServices: those that there are or were, and the others as MISSING."""
    cluster = fargate.clusters.find(body.get("cluster")).name
    wanted = body.get("services") or []
    if not wanted:
        raise invalid("Services cannot be empty.")
    if len(wanted) > MAX_DESCRIBED:
        raise invalid(f"Services can have at most {MAX_DESCRIBED} items.")
    tags = "TAGS" in (body.get("include") or [])
    services: list[Any] = []
    failures = []
    for reference in dict.fromkeys(wanted):
        found = fargate.services.find(cluster, reference)
        if found is None:
            name = reference.rpartition("/")[2]
            failures.append({"arn": fargate.place.service(cluster, name), "reason": "MISSING"})
        else:
            services.append(describe_service(found, fargate.place, tags=tags))
    return {"services": services, "failures": failures}


def list_all(fargate: Fargate, body: Body) -> Answer:
    """ListServices: the ACTIVE ones, as [botocore] says at DeleteService."""
    cluster = fargate.clusters.find(body.get("cluster")).name
    wanted = (body.get("launchType"), body.get("schedulingStrategy"))
    there = fargate.services.of(cluster)
    active = [service.arn for service in there if service.status is ServiceStatus.ACTIVE]
    kept = active if wanted[0] in (None, "FARGATE") and wanted[1] in (None, "REPLICA") else []
    listed, more = page({"maxResults": 10, **body}, kept)
    return {"serviceArns": listed, **more}
