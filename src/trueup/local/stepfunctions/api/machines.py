"""Operations on state machines."""

from __future__ import annotations

from trueup.local.stepfunctions.api.requests import Body, answer_page, page, required
from trueup.local.stepfunctions.engine import Engine
from trueup.local.stepfunctions.errors import ApiError, DefinitionError
from trueup.local.stepfunctions.names import check_name
from trueup.local.stepfunctions.parsing import parse_definition
from trueup.local.stepfunctions.values import Json, to_text

_LOGGING = {"level": "OFF", "includeExecutionData": False}
_TRACING = {"enabled": False}


def create(engine: Engine, body: Body) -> Json:
    """CreateStateMachine: asked again with the same definition and role, it answers the same."""
    _only_standard(body)
    made = engine.machines.create(
        check_name(required(body, "name")),
        required(body, "definition"),
        required(body, "roleArn"),
        logging=body.get("loggingConfiguration"),
        tracing=body.get("tracingConfiguration"),
    )
    made.tags |= _tags(body)
    return {"stateMachineArn": made.arn, "creationDate": made.created_at}


def _only_standard(body: Body) -> None:
    if body.get("type", "STANDARD") != "STANDARD":
        raise ApiError("InvalidDefinition", f"Type {body['type']} is not implemented; supported is STANDARD")
    if body.get("publish"):
        raise ApiError(
            "ValidationException", "publish is not implemented: there are no versions and aliases yet"
        )


def update(engine: Engine, body: Body) -> Json:
    """UpdateStateMachine: for executions to come."""
    names = {"loggingConfiguration": "logging", "tracingConfiguration": "tracing"}
    settings = {attribute: body[name] for name, attribute in names.items() if name in body}
    definition, role_arn = body.get("definition"), body.get("roleArn")
    if definition is None and role_arn is None and not settings:
        raise ApiError(
            "MissingRequiredParameter",
            "Either the definition, the role ARN, the LoggingConfiguration, or the TracingConfiguration "
            "must be specified",
        )
    found = engine.machines.update(
        required(body, "stateMachineArn"), definition=definition, role_arn=role_arn, settings=settings
    )
    return {"updateDate": found.updated_at, "revisionId": found.revision_id}


def delete(engine: Engine, body: Body) -> Json:
    """DeleteStateMachine: its executions go on."""
    engine.machines.delete(required(body, "stateMachineArn"))
    return {}


def describe(engine: Engine, body: Body) -> Json:
    """DescribeStateMachine."""
    found = engine.machines.find(required(body, "stateMachineArn"))
    answer = {
        "stateMachineArn": found.arn,
        "name": found.name,
        "status": "ACTIVE",
        "type": "STANDARD",
        "definition": found.definition,
        "roleArn": found.role_arn,
        "creationDate": found.created_at,
        "loggingConfiguration": found.logging or _LOGGING,
        "tracingConfiguration": found.tracing or _TRACING,
    }
    return answer if found.revision_id is None else {**answer, "revisionId": found.revision_id}


def describe_for_execution(engine: Engine, body: Body) -> Json:
    """DescribeStateMachineForExecution: what an execution runs, whatever has become of its machine."""
    execution = engine.find_execution(required(body, "executionArn"))
    origin, run = execution.origin, execution.origin.map_run
    answer = {
        "stateMachineArn": origin.machine_arn,
        "name": origin.machine_name,
        "definition": to_text(execution.workflow.source),
        "roleArn": origin.role_arn,
        "updateDate": execution.started_at,
        "loggingConfiguration": _LOGGING,
        "tracingConfiguration": _TRACING,
    }
    return {**answer, "mapRunArn": run.arn, "label": run.label} if run else answer


def list_all(engine: Engine, body: Body) -> Json:
    """ListStateMachines, by name."""
    machines, token = page(body, engine.machines.all())
    listed = [
        {
            "stateMachineArn": found.arn,
            "name": found.name,
            "type": "STANDARD",
            "creationDate": found.created_at,
        }
        for found in machines
    ]
    return answer_page("stateMachines", listed, token)


def validate(_: Engine, body: Body) -> Json:
    """ValidateStateMachineDefinition: OK, or every problem with its place."""
    try:
        parse_definition(required(body, "definition"))
    except DefinitionError as error:
        diagnostics = [
            {
                "severity": "ERROR",
                "code": problem.code,
                "message": problem.message,
                "location": problem.location,
            }
            for problem in error.problems
        ]
        return {"result": "FAIL", "diagnostics": diagnostics, "truncated": False}
    return {"result": "OK", "diagnostics": [], "truncated": False}


def _tags(body: Body) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in body.get("tags") or []}


def tag(engine: Engine, body: Body) -> Json:
    """TagResource."""
    engine.machines.tag(required(body, "resourceArn"), _tags(body))
    return {}


def untag(engine: Engine, body: Body) -> Json:
    """UntagResource."""
    engine.machines.untag(required(body, "resourceArn"), body.get("tagKeys") or [])
    return {}


def list_tags(engine: Engine, body: Body) -> Json:
    """ListTagsForResource."""
    tags = engine.machines.tags(required(body, "resourceArn"))
    return {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
