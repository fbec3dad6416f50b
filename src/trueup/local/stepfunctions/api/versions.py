"""Operations on versions and aliases of state machines."""

from __future__ import annotations

from trueup.local.stepfunctions.api.requests import Body, answer_page, page, required
from trueup.local.stepfunctions.engine import Engine
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.values import Json
from trueup.local.stepfunctions.versions import split


def publish(engine: Engine, body: Body) -> Json:
    """PublishStateMachineVersion."""
    made = engine.versions.publish(
        required(body, "stateMachineArn"), body.get("revisionId"), body.get("description")
    )
    return {"stateMachineVersionArn": made.arn, "creationDate": made.created_at}


def delete(engine: Engine, body: Body) -> Json:
    """DeleteStateMachineVersion."""
    engine.versions.delete_version(required(body, "stateMachineVersionArn"))
    return {}


def list_all(engine: Engine, body: Body) -> Json:
    """ListStateMachineVersions, newest first."""
    found = engine.machines.find(required(body, "stateMachineArn"))
    versions, token = page(body, list(reversed(found.versions.values())))
    listed = [{"stateMachineVersionArn": one.arn, "creationDate": one.created_at} for one in versions]
    return answer_page("stateMachineVersions", listed, token)


def create_alias(engine: Engine, body: Body) -> Json:
    """CreateStateMachineAlias."""
    made = engine.versions.create_alias(
        required(body, "name"), body.get("description"), body["routingConfiguration"]
    )
    return {"stateMachineAliasArn": made.arn, "creationDate": made.created_at}


def update_alias(engine: Engine, body: Body) -> Json:
    """UpdateStateMachineAlias."""
    arn = required(body, "stateMachineAliasArn")
    description, routing = body.get("description"), body.get("routingConfiguration")
    if description is None and routing is None:
        raise ApiError(
            "ValidationException", "Either the description or the routingConfiguration must be specified"
        )
    return {"updateDate": engine.versions.update_alias(arn, description, routing).updated_at}


def delete_alias(engine: Engine, body: Body) -> Json:
    """DeleteStateMachineAlias."""
    engine.versions.delete_alias(required(body, "stateMachineAliasArn"))
    return {}


def describe_alias(engine: Engine, body: Body) -> Json:
    """DescribeStateMachineAlias."""
    found = engine.versions.find_alias(required(body, "stateMachineAliasArn"))
    answer = {
        "stateMachineAliasArn": found.arn,
        "name": found.name,
        "routingConfiguration": [
            {"stateMachineVersionArn": arn, "weight": weight} for arn, weight in found.routes
        ],
        "creationDate": found.created_at,
        "updateDate": found.updated_at,
    }
    return answer if found.description is None else {**answer, "description": found.description}


def list_aliases(engine: Engine, body: Body) -> Json:
    """ListStateMachineAliases, of a machine or of one of its versions."""
    arn = required(body, "stateMachineArn")
    if split(arn)[1] is not None:
        engine.versions.find_version(arn)
    aliases, token = page(body, engine.versions.aliases_of(arn))
    listed = [{"stateMachineAliasArn": one.arn, "creationDate": one.created_at} for one in aliases]
    return answer_page("stateMachineAliases", listed, token)
