"""template.yaml: valid for SAM and CloudFormation, true to the job files, and exact in what it permits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs
from cfnlint.decode import cfn_yaml
from samtranslator.translator.transform import transform

from trueup.jobfile import catalogue
from trueup.model.job import JobFile

from .definitions import FILES, ROOT

TEXT = (ROOT / "template.yaml").read_text()
JOBS = catalogue(ROOT)
MODES = [(job, mode) for job in JOBS for mode in ("read", "write")]

# AWS has no resource level for these.
ANYWHERE = {
    "ecs:DescribeTaskDefinition": "a family is looked up by name",
    "ecs:ListTasks": "what restricts it is the condition on the cluster",
    "ecr:GetAuthorizationToken": "the token is the account's",
}


@cache
def template() -> dict[str, Any]:
    """The template as it is written, its intrinsics as mappings."""
    return plain(cfn_yaml.loads(TEXT))


def plain(value: Any) -> Any:
    """Without the linter's own types."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


@cache
def deployed() -> dict[str, Any]:
    """What SAM makes of it."""
    document = plain(cfn_yaml.loads(TEXT))
    for resource in document["Resources"].values():
        for name in ("CodeUri", "ContentUri", "DefinitionUri"):
            if name in resource.get("Properties", {}):  # as `sam package` leaves them
                resource["Properties"][name] = f"s3://packages/{name}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        made: dict[str, Any] = transform(document, {}, Policies())
    return made


class Policies:
    """No function of ours uses a managed policy of AWS by its name."""

    def load(self) -> dict[str, str]:
        return {}


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    """The resources of one type."""
    return {name: one for name, one in template()["Resources"].items() if one["Type"] == kind}


def test_cfn_lint_finds_nothing() -> None:
    assert [] == lint(TEXT, config=ManualArgs(regions=["eu-west-1"]))


def test_sam_makes_cloudformation_of_it() -> None:
    kinds = {one["Type"] for one in deployed()["Resources"].values()}
    assert {"AWS::Lambda::Function", "AWS::StepFunctions::StateMachine", "AWS::Scheduler::Schedule"} <= kinds
    assert not {kind for kind in kinds if "Serverless" in kind}


def test_every_resource_says_why_it_exists() -> None:
    lines = TEXT.splitlines()
    for name in template()["Resources"]:
        assert lines[lines.index(f"  {name}:") - 1].startswith("  # "), name


def test_every_handler_and_every_definition_is_deployed() -> None:
    functions = {one["Properties"]["CodeUri"] for one in of_type("AWS::Serverless::Function").values()}
    assert {f"lambdas/{path.name}" for path in (ROOT / "lambdas").iterdir()} == functions
    machines = of_type("AWS::Serverless::StateMachine").values()
    assert {f"statemachines/{path.name}" for path in FILES} == {
        one["Properties"]["DefinitionUri"] for one in machines
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_definition_gets_every_substitution_that_it_names(path: Path) -> None:
    (machine,) = [
        one["Properties"]
        for one in of_type("AWS::Serverless::StateMachine").values()
        if one["Properties"]["DefinitionUri"].endswith(path.name)
    ]
    assert set(re.findall(r"\$\{(\w+)\}", path.read_text())) == set(machine["DefinitionSubstitutions"])


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_a_job_has_a_task_definition_and_a_role_for_each_mode(name: str, mode: str) -> None:
    job, resource = JOBS[name], definition(name, mode)
    assert ("Retain", "Retain") == (resource["DeletionPolicy"], resource["UpdateReplacePolicy"])
    found = resource["Properties"]
    assert (str(job.task.cpu), str(job.task.memory)) == (found["Cpu"], found["Memory"])
    (container,) = found["ContainerDefinitions"]
    assert ("job", job.task.stop_seconds) == (container["Name"], container["StopTimeout"])
    assert secrets_of(job, mode) == {
        one["Name"]: one["ValueFrom"]["Ref"] for one in container.get("Secrets", [])
    }
    pattern = template()["Parameters"][container["Image"]["Ref"]]["AllowedPattern"]
    assert re.fullmatch(pattern, "repository/image@sha256:" + "0" * 64)
    assert not re.fullmatch(pattern, "repository/image:latest")


def test_no_two_task_definitions_share_a_role() -> None:
    roles = [definition(*one)["Properties"]["TaskRoleArn"]["Fn::GetAtt"][0] for one in MODES]
    assert len(MODES) == len(set(roles))


def definition(job: str, mode: str) -> dict[str, Any]:
    """The task definition of a job's mode, by the family that `plan` looks up."""
    family = {"Fn::Sub": f"${{AWS::StackName}}-{job}-{mode}"}
    (found,) = [
        one for one in of_type("AWS::ECS::TaskDefinition").values() if one["Properties"]["Family"] == family
    ]
    return found


def secrets_of(job: JobFile, mode: str) -> dict[str, str]:
    """The variables that a task finds its secrets in, and the parameter with the secret of this mode."""
    names = getattr(job.secrets, mode)
    return {f"SECRET_{one.upper()}": f"FlightsPostgres{mode.capitalize()}Secret" for one in names}


def test_a_rehearsal_cannot_write() -> None:
    for job in JOBS:
        actions = {action for _, action, _ in permissions(role_of(job, "read"))}
        own = actions - {action for _, action, _ in of_policy("TaskPolicy")}
        assert own <= {"s3:GetObject", "s3:ListBucket", "dynamodb:Scan"}, own


def role_of(job: str, mode: str) -> str:
    """The logical name of the task role."""
    return str(definition(job, mode)["Properties"]["TaskRoleArn"]["Fn::GetAtt"][0])


def permissions(role: str) -> Iterator[tuple[str, str, Any]]:
    """Everything that a role allows: where it says so, the action and the resource."""
    properties = template()["Resources"][role]["Properties"]
    for policy in properties.get("Policies", []):
        yield from statements(role, policy["PolicyDocument"])
    for managed in properties.get("ManagedPolicyArns", []):
        yield from of_policy(managed["Ref"])


def of_policy(name: str) -> Iterator[tuple[str, str, Any]]:
    """Everything that a managed policy allows."""
    yield from statements(name, template()["Resources"][name]["Properties"]["PolicyDocument"])


def statements(where: str, document: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """A policy's actions, each with each of its resources."""
    for statement in document["Statement"]:
        for action in listed(statement["Action"]):
            for resource in listed(statement["Resource"]):
                yield where, action, resource


def listed(value: Any) -> list[Any]:
    """One or many, as many."""
    return value if isinstance(value, list) else [value]


def every_permission() -> Iterator[tuple[str, str, Any]]:
    """Of all roles."""
    for role in of_type("AWS::IAM::Role"):
        yield from permissions(role)


def test_every_permission_names_its_action_and_its_resource() -> None:
    for where, action, resource in every_permission():
        assert "*" not in action, (where, action)
        assert (resource == "*") == (action in ANYWHERE), (where, action, resource)


# An ARN that stands for many things, by how it ends, with the reason why it cannot name one.
ENDINGS = {
    r":execution:\$\{AWS::StackName\}-(backfill|reconcile|partitions)(/Slices)?:\*": "named after its run",
    r":task-definition/\$\{AWS::StackName\}-[a-z-]+:\*": "a run goes on with the revision of its plan",
    r":task/\$\{Cluster\}/\*": "ECS names the tasks",
    r":::\$\{FlightsBucket\}/flights/\*": "a sample's input is a folder",
    r"\$\{Bucket.Arn\}/runs/\*(/report\.(json|html)|/(comparison|repair|evidence)\.json)?": "its run's",
    r"\$\{Bucket.Arn\}/runs/\*/known/\*": "what people sign about a run's report has names of its own",
    r"\$\{Bucket.Arn\}/runs/\*/(so-far|evidence)/\*": "what reports name by its hash is named after it",
}


def test_an_arn_stands_for_many_things_only_for_a_reason() -> None:
    many = {arn for _, _, resource in every_permission() if "*" in (arn := written(resource)) and arn != "*"}
    used = {ending for ending in ENDINGS for arn in many if re.search(f"{ending}$", arn)}
    assert set() == {arn for arn in many if not any(re.search(f"{ending}$", arn) for ending in ENDINGS)}
    assert ENDINGS.keys() == used


def written(resource: Any) -> str:
    """A resource of a policy as the template writes it; nothing where it only refers to another one."""
    found = resource.get("Fn::Sub", "") if isinstance(resource, dict) else resource
    return str(found)


def test_nobody_but_those_who_prove_it_may_stop_tasks() -> None:
    may = {
        role
        for role in of_type("AWS::IAM::Role")
        for _, action, _ in permissions(role)
        if action == "ecs:StopTask"
    }
    # Step Functions stops the tasks of an execution that is stopped.
    assert {"AcceptRole", "SettleRole", "CloseRole", "SweepRole", "PartitionsRole", "BackfillRole"} == may


@pytest.mark.parametrize(
    ("role", "modes"),
    [("PartitionsRole", MODES), ("BackfillRole", [one for one in MODES if one[1] == "read"])],
)
def test_a_machine_may_run_its_tasks_and_pass_their_roles_and_no_others(
    role: str, modes: list[tuple[str, str]]
) -> None:
    allowed = list(permissions(role))
    runs = {
        resource["Fn::Sub"].rpartition("/")[2] for _, action, resource in allowed if action == "ecs:RunTask"
    }
    assert {f"${{AWS::StackName}}-{job}-{mode}:*" for job, mode in modes} == runs
    passed = {resource["Fn::GetAtt"][0] for _, action, resource in allowed if action == "iam:PassRole"}
    used = {
        definition(*one)["Properties"][kind]["Fn::GetAtt"][0]
        for one in modes
        for kind in ("TaskRoleArn", "ExecutionRoleArn")
    }
    assert used == passed


def test_step_functions_may_follow_what_it_waits_for() -> None:
    rules = {
        role: {
            resource["Fn::Sub"].rpartition("/")[2]
            for _, action, resource in permissions(role)
            if action == "events:PutRule"
        }
        for role in ("PartitionsRole", "BackfillRole")
    }
    assert {"StepFunctionsGetEventsForECSTaskRule"} == rules["PartitionsRole"]
    assert {
        "StepFunctionsGetEventsForECSTaskRule",
        "StepFunctionsGetEventsForStepFunctionsExecutionRule",
    } == rules["BackfillRole"]


def test_executions_that_wait_for_a_person_are_woken_by_those_who_decide_or_mend_and_nobody_else() -> None:
    may = {
        role
        for role in of_type("AWS::IAM::Role")
        for _, action, resource in permissions(role)
        if action == "states:SendTaskSuccess" and resource["Fn::Sub"].endswith("-backfill")
    }
    assert {"ApiRole", "AskRole", "SettleRole", "SweepRole"} == may


def test_the_closer_hears_of_the_runs_executions_alone() -> None:
    (rule,) = [one for one in deployed()["Resources"].values() if one["Type"] == "AWS::Events::Rule"]
    detail = rule["Properties"]["EventPattern"]["detail"]
    assert {
        "status": ["FAILED", "TIMED_OUT", "ABORTED"],
        "stateMachineArn": [{"Ref": "BackfillMachine"}, {"Ref": "ReconcileMachine"}],
    } == detail


def test_a_function_is_over_before_the_state_that_waits_for_it() -> None:
    from .definitions import state

    for file, name, function in (
        ("backfill", "Plan the run", "PlanFunction"),
        ("backfill", "Open or settle the phase", "SettleFunction"),
        ("partitions", "Accept what it did", "AcceptFunction"),
    ):
        timeout = template()["Resources"][function]["Properties"]["Timeout"]
        assert timeout < state(file, name)["TimeoutSeconds"]


def test_every_call_of_the_api_has_to_be_signed() -> None:
    (route,) = of_type("AWS::ApiGatewayV2::Route").values()
    assert "AWS_IAM" == route["Properties"]["AuthorizationType"]
    (integration,) = of_type("AWS::ApiGatewayV2::Integration").values()
    assert "2.0" == integration["Properties"]["PayloadFormatVersion"]
    assert {"Fn::GetAtt": ["ApiFunction", "Arn"]} == integration["Properties"]["IntegrationUri"]
    (permission,) = of_type("AWS::Lambda::Permission").values()
    assert {"Ref": "ApiFunction"} == permission["Properties"]["FunctionName"]
    assert permission["Properties"]["SourceArn"]["Fn::Sub"].endswith(":${HttpApi}/*")


def test_the_api_may_do_what_its_verbs_do() -> None:
    actions = {action for _, action, _ in permissions("ApiRole")}
    assert {
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:ConditionCheckItem",
        "s3:GetObject",
        "s3:PutObject",
        "s3:ListBucket",
        "logs:GetLogEvents",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "states:StartExecution",
        "states:DescribeExecution",
        "states:SendTaskSuccess",
    } == actions
    written = [resource for _, action, resource in permissions("ApiRole") if action == "s3:PutObject"]
    names = ("report", "comparison", "repair", "evidence")
    folders = ("known/", "so-far/", "evidence/")
    reports = tuple(f"${{Bucket.Arn}}/runs/*/{name}" for name in (*(f"{one}." for one in names), *folders))
    assert all(resource["Fn::Sub"].startswith(reports) for resource in written)


def test_logs_are_kept_for_a_while_and_the_ledger_can_be_put_back() -> None:
    groups = [one["Properties"] for one in of_type("AWS::Logs::LogGroup").values()]
    assert {30} == {group["RetentionInDays"] for group in groups}
    functions = {f"/aws/lambda/${{AWS::StackName}}-{path.name}" for path in (ROOT / "lambdas").iterdir()}
    assert functions < {group["LogGroupName"]["Fn::Sub"] for group in groups}
    (table,) = of_type("AWS::DynamoDB::Table").values()
    assert {"PointInTimeRecoveryEnabled": True} == table["Properties"]["PointInTimeRecoverySpecification"]


def test_the_runs_objects_are_kept_private_and_versioned() -> None:
    found = template()["Resources"]["Bucket"]["Properties"]
    assert "Enabled" == found["VersioningConfiguration"]["Status"]
    assert all(found["PublicAccessBlockConfiguration"].values())
    assert found["BucketEncryption"]
