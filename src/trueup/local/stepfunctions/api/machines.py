"""Operations on state machines."""

from __future__ import annotations

from trueup.local.stepfunctions.api.requests import Body, answer_page, page, required
from trueup.local.stepfunctions.api.tags import given as given_tags
from trueup.local.stepfunctions.engine import Engine
from trueup.local.stepfunctions.errors import ApiError, DefinitionError, Problem
from trueup.local.stepfunctions.log_groups import check_logging
from trueup.local.stepfunctions.machines import StateMachine
from trueup.local.stepfunctions.names import check_name
from trueup.local.stepfunctions.parsing import parse_definition
from trueup.local.stepfunctions.references import variable_references
from trueup.local.stepfunctions.values import Json, to_text
from trueup.local.stepfunctions.versions import split

_LOGGING = {"level": "OFF", "includeExecutionData": False}
_TRACING = {"enabled": False}
OWN_KEY = {"type": "AWS_OWNED_KEY"}
"""How everything is encrypted that is described."""
_DIAGNOSTICS = 100
"""How many problems are told at once, unless fewer are asked for [botocore]."""


def create(engine: Engine, body: Body) -> Json:
    """CreateStateMachine: asked again with the same definition, it answers the same."""
    check_keys(body)
    _check_publishing(body)
    made = engine.machines.create(
        check_name(required(body, "name")),
        required(body, "definition"),
        required(body, "roleArn"),
        given_tags(body),
        express=_express(body),
        **_settings(body),
    )
    answer: dict[str, Json] = {"stateMachineArn": made.arn, "creationDate": made.created_at}
    return {**answer, **_published(engine, made.arn, body)}


def _express(body: Body) -> bool:
    return bool(body.get("type") == "EXPRESS")


def _type(machine: StateMachine) -> str:
    return "EXPRESS" if machine.express else "STANDARD"


def check_keys(body: Body) -> None:
    """Raises ApiError where anything but AWS's own key is asked for."""
    kind = (body.get("encryptionConfiguration") or OWN_KEY)["type"]
    if kind != "AWS_OWNED_KEY":
        raise ApiError(
            "InvalidEncryptionConfiguration", f"Type {kind} is not implemented; supported is AWS_OWNED_KEY"
        )


def _check_publishing(body: Body) -> None:
    if body.get("versionDescription") is not None and not body.get("publish"):
        raise ApiError("ValidationException", "Version description can only be set when publish is true")


def _published(engine: Engine, arn: str, body: Body) -> dict[str, Json]:
    if not body.get("publish"):
        return {}
    version = engine.versions.publish(arn, description=body.get("versionDescription"))
    return {"stateMachineVersionArn": version.arn}


_SETTINGS = {"loggingConfiguration": "logging", "tracingConfiguration": "tracing"}


def _settings(body: Body) -> dict[str, Json]:
    check_logging(body.get("loggingConfiguration"))
    return {attribute: body[name] for name, attribute in _SETTINGS.items() if name in body}


def update(engine: Engine, body: Body) -> Json:
    """UpdateStateMachine: for executions to come."""
    settings, definition = _settings(body), body.get("definition")
    if (
        definition is None
        and body.get("roleArn") is None
        and not settings
        and "encryptionConfiguration" not in body
    ):
        raise ApiError(
            "MissingRequiredParameter",
            "Either the definition, the role ARN, the LoggingConfiguration, or the TracingConfiguration "
            "must be specified",
        )
    check_keys(body)
    _check_publishing(body)
    arn = required(body, "stateMachineArn")
    if body.get("roleArn") is not None:
        settings["role_arn"] = required(body, "roleArn")
    found = engine.machines.update(arn, definition=definition, settings=settings)
    answer: dict[str, Json] = {"updateDate": found.updated_at, "revisionId": found.revision.id}
    return {**answer, **_published(engine, arn, body)}


def delete(engine: Engine, body: Body) -> Json:
    """DeleteStateMachine: its executions end at their next transition, and then it goes."""
    engine.delete_machine(required(body, "stateMachineArn"))
    return {}


def describe(engine: Engine, body: Body) -> Json:
    """DescribeStateMachine, of a machine or of a version of it."""
    arn = required(body, "stateMachineArn")
    found = engine.machines.find(split(arn)[0])
    version = engine.versions.find_version(arn) if split(arn)[1] else None
    revision = version.revision if version else found.revision
    hidden = body.get("includedData") == "METADATA_ONLY"
    answer = {
        "stateMachineArn": arn,
        "name": found.name,
        "status": "DELETING" if found.deleting else "ACTIVE",
        "type": _type(found),
        "definition": "{}" if hidden else revision.definition,
        "roleArn": revision.role_arn,
        "creationDate": version.created_at if version else found.created_at,
        "loggingConfiguration": revision.logging or _LOGGING,
        "tracingConfiguration": revision.tracing or _TRACING,
        "encryptionConfiguration": OWN_KEY,
    }
    told = {
        "revisionId": revision.id,
        "description": version.description if version else None,
        "variableReferences": None if hidden else variable_references(revision.machine.source) or None,
    }
    return answer | {name: value for name, value in told.items() if value is not None}


def describe_for_execution(engine: Engine, body: Body) -> Json:
    """DescribeStateMachineForExecution: what an execution runs, whatever has become of its machine."""
    execution = engine.find_execution(required(body, "executionArn", "express"))
    origin, run = execution.origin, execution.origin.map_run
    revision, hidden = origin.revision, body.get("includedData") == "METADATA_ONLY"
    definition = to_text(execution.workflow.source) if run else revision.definition
    answer = {
        "stateMachineArn": origin.machine_arn,
        "name": origin.machine_name,
        "definition": "{}" if hidden else definition,
        "roleArn": origin.role_arn,
        "updateDate": revision.made_at,
        "loggingConfiguration": revision.logging or _LOGGING,
        "tracingConfiguration": revision.tracing or _TRACING,
        "encryptionConfiguration": OWN_KEY,
    }
    told = {
        "mapRunArn": run.arn if run else None,
        "label": run.label if run else None,
        "revisionId": revision.id,
        "variableReferences": None if hidden else variable_references(execution.workflow.source) or None,
    }
    return answer | {name: value for name, value in told.items() if value is not None}


def list_all(engine: Engine, body: Body) -> Json:
    """ListStateMachines, by name."""
    machines, token = page(body, engine.machines.all())
    listed = [
        {
            "stateMachineArn": found.arn,
            "name": found.name,
            "type": _type(found),
            "creationDate": found.created_at,
        }
        for found in machines
    ]
    return answer_page("stateMachines", listed, token)


def validate(_: Engine, body: Body) -> Json:
    """ValidateStateMachineDefinition: OK, or every problem with its place."""
    try:
        parse_definition(required(body, "definition"), express=_express(body))
    except DefinitionError as error:
        most = body.get("maxResults") or _DIAGNOSTICS
        diagnostics = [_diagnostic(problem) for problem in error.problems[:most]]
        return {"result": "FAIL", "diagnostics": diagnostics, "truncated": len(error.problems) > most}
    return {"result": "OK", "diagnostics": [], "truncated": False}


def _diagnostic(problem: Problem) -> Json:
    told = {"severity": "ERROR", "code": problem.code, "message": problem.message}
    return told if problem.location is None else {**told, "location": problem.location}
