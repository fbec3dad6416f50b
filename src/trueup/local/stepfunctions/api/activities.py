"""Operations on activities."""

from __future__ import annotations

from collections.abc import Awaitable

from trueup.local.stepfunctions.api.machines import OWN_KEY, check_keys
from trueup.local.stepfunctions.api.requests import Body, answer_page, page, required
from trueup.local.stepfunctions.api.tags import given as given_tags
from trueup.local.stepfunctions.engine import Engine
from trueup.local.stepfunctions.names import check_name
from trueup.local.stepfunctions.values import Json


def create(engine: Engine, body: Body) -> Json:
    """CreateActivity: asked again, it answers the same."""
    check_keys(body)
    made = engine.activities.create(check_name(required(body, "name")), given_tags(body))
    return {"activityArn": made.arn, "creationDate": made.created_at}


def delete(engine: Engine, body: Body) -> Json:
    """DeleteActivity."""
    engine.activities.delete(required(body, "activityArn"))
    return {}


def describe(engine: Engine, body: Body) -> Json:
    """DescribeActivity."""
    found = engine.activities.find(required(body, "activityArn"))
    return {
        "activityArn": found.arn,
        "name": found.name,
        "creationDate": found.created_at,
        "encryptionConfiguration": OWN_KEY,
    }


def list_all(engine: Engine, body: Body) -> Json:
    """ListActivities, by name."""
    activities, token = page(body, engine.activities.all())
    listed = [
        {"activityArn": found.arn, "name": found.name, "creationDate": found.created_at}
        for found in activities
    ]
    return answer_page("activities", listed, token)


def get_task(engine: Engine, body: Body) -> Awaitable[Json]:
    """GetActivityTask: waits up to a minute for work."""
    return engine.activities.take(required(body, "activityArn"), body.get("workerName"))
