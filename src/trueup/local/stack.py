"""The local stack: the emulator, PostgreSQL, ECS and Step Functions, with template.yaml deployed to them.

    one address       a thread of this process, that passes calls on to the three below
    AWS around it     MiniStack, a process; or an emulator of one's own
    PostgreSQL        a process
    ECS, the engine   threads of this process; tasks are processes
    functions         run by the emulator, and find ECS and the engine by AWS_ENDPOINT_URL_<SERVICE>

Everything ends with the block, and when this process is killed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trueup.artifacts import Artifacts
from trueup.artifacts.s3 import S3Store
from trueup.errors import LocalStackError
from trueup.ledger import Ledger
from trueup.ledger.dynamo import DynamoTable
from trueup.local import ecs as local_ecs
from trueup.local import faults as local_faults
from trueup.local.aws import LEADS_TO, NO_PROXY, REGION, Connect, client, connector, ministack
from trueup.local.deploying import Deployed, deploy, give_environment, make_machines, make_tasks
from trueup.local.ecs import WARM, Containers, Ecs
from trueup.local.faults import FaultPlan, Faults, Strike
from trueup.local.gateway import REST, STATES, TASKS, gateway
from trueup.local.job_tasks import JobFolder, builds_of, find_jobs, images_of, register
from trueup.local.own_servers import check_given
from trueup.local.packaging import project, read_template
from trueup.local.parts import Parts
from trueup.local.people import Keys, keys_of, local_user
from trueup.local.postgres import postgres
from trueup.local.serving import listen, url_of
from trueup.local.stepfunctions import stepfunctions
from trueup.local.targets import make_targets
from trueup.local.turns import TakingTurns

NAME = "trueup"
CLUSTER = NAME
"""The template calls the cluster as the stack."""
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": REGION,
}
# Where tasks run on AWS; nothing asks for them here.
_NETWORK = {"Subnets": "subnet-local", "SecurityGroups": "sg-local"}

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a stack can be told. Times are seconds.

    `jobs` is a folder with further `containers/*/job.yaml`: their task definitions are made of the job files.
    `scale` is the factor for a machine's waits and retries, `timeouts` that for its limits (1: real time).
    """

    aws: str | None = None
    jobs: Path | None = None
    faults: FaultPlan = field(default_factory=FaultPlan)
    struck: Callable[[Strike], None] = lambda strike: None
    """Hears of each fault that strikes, on the thread that it strikes on."""
    scale: float = 1.0
    timeouts: float = 1.0
    heartbeat_seconds: int = 60
    """How long a task may be silent that is awaited by its word: long enough for its start under load."""
    task_environment: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, Path] = field(default_factory=dict)
    """Folders that stand for images of one's own, where tasks are processes."""
    containers: bool = False
    """Whether tasks are containers, of the engine that DOCKER_HOST names."""
    fargate: Mapping[str, float] = field(default_factory=dict)
    """What docs/ecs.md lists as options: `unseen`, `kept`, `cold_start` and their like."""
    mocks: Path | None = None
    """A mock configuration, for machines that are started with the name of a case."""


@dataclass(frozen=True)
class Stack:
    """A stack that is up. Any thread may use it. `endpoint` serves all that the three below it do."""

    endpoint: str
    aws: str
    stepfunctions: str
    ecs: Ecs
    faults: Faults
    dsn: str
    deployed: Deployed
    keys: Keys
    """Of the user of this machine, as whom its tools of AWS call."""
    parts: Parts
    """To wait for something: who waits by it hears when a server of the stack ends."""
    _clients: dict[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The ledger's name."""
        return self.deployed.outputs["Table"]

    @property
    def bucket(self) -> str:
        """The name of the bucket of runs."""
        return self.deployed.outputs["Bucket"]

    @property
    def api(self) -> str:
        """Where the HTTP API is. By its path: names below `localhost` are not known everywhere."""
        (api,) = self.deployed.of_type("AWS::ApiGatewayV2::Api")
        return f"{self.endpoint}/_aws/execute-api/{api}/$default"

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger."""
        return Ledger(DynamoTable(self.client("dynamodb"), self.table))

    @cached_property
    def artifacts(self) -> Artifacts:
        """The runs' objects."""
        return Artifacts(S3Store(self.client("s3"), self.bucket))

    def client(self, service: str) -> Any:
        """A boto3 client of a service, at whoever serves it: the same one each time."""
        if service not in self._clients:
            own = {"ecs": self.ecs.endpoint, "stepfunctions": self.stepfunctions}
            self._clients[service] = client(service, own.get(service, self.aws))
        return self._clients[service]

    def invoke(self, function: str, event: Mapping[str, Any]) -> Any:
        """Call one of the functions: `start`, `sweep`, … Gives its answer, or `{errorType, errorMessage}`."""
        name = f"{NAME}-{function}"
        answer = self.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event).encode())
        return json.loads(answer["Payload"].read())

    def environment(self) -> dict[str, str]:
        """What points botocore, and so every tool of AWS, at this stack."""
        identifier, secret = self.keys
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            **CREDENTIALS,
            "AWS_ACCESS_KEY_ID": identifier,
            "AWS_SECRET_ACCESS_KEY": secret,
        }


@contextmanager
def stack(options: Options | None = None, note: Note = lambda line: None) -> Iterator[Stack]:
    """A stack with the template deployed, and empty targets for the sample jobs, as long as the block lasts.

    `note` hears what happens, in a line each. Raises LocalStackError, UsageError for job files.
    Where the block fails because a server of the stack has ended, that is raised in its place.
    """
    options = options or Options()
    root = project()
    # What can be wrong is said before anything is started.
    read_template(root)
    check_given(options.aws)
    jobs = find_jobs(*dict.fromkeys(folder.resolve() for folder in (root, options.jobs) if folder))
    parts = Parts()
    with ExitStack() as ups, parts.blamed():
        note("Starting MiniStack, PostgreSQL, ECS and Step Functions …")
        front = listen()
        ups.callback(front.close)
        # What functions that people make find of the servers that are ours.
        ours = _own(url_of(front), url_of(front))
        aws = options.aws or ups.enter_context(ministack(env=ours, started=parts.add))
        dsn = ups.enter_context(postgres(started=parts.add))
        machines = ups.enter_context(listen())
        faults = ups.enter_context(local_faults.served(options.faults, options.struck))
        told = _ecs_options(options, aws, _own(url_of(machines), url_of(front)), jobs, faults)
        ecs = ups.enter_context(local_ecs.serve(told))
        endpoints = {"*": aws, "events": aws, "ecs": ecs.endpoint}
        engine = ups.enter_context(
            stepfunctions(
                endpoints,
                listening=machines,
                scale=options.scale,
                timeouts=options.timeouts,
                mocks=options.mocks,
                between=lambda calls: faults.between(TakingTurns(calls, f"{NAME}-")),
            )
        )
        faults.stand_between({"*": aws, "states": engine}, ecs)
        servers = {REST: aws, STATES: engine, TASKS: ecs.endpoint}
        endpoint = ups.enter_context(gateway(front, servers))
        note("Deploying template.yaml …")
        connect = connector(aws)
        with _explained(aws):
            deployed = _deploy(connect, options, root, dsn, jobs)
            up = Stack(
                endpoint, aws, engine, ecs, faults, dsn, deployed, keys_of(local_user(), connect), parts
            )
            _hand_over(connect, up, jobs, note)
        yield up


@contextmanager
def _explained(aws: str) -> Iterator[None]:
    """What an emulator refuses while the stack is made, or does not answer, as an error for people."""
    try:
        yield
    except ClientError as error:
        told = error.response["Error"]
        raise LocalStackError(
            f"{error.operation_name} was refused by the local stack: {told['Code']}: {told['Message']}",
            remedy="Where a stack was deployed to this emulator before, remove it or take an empty one.",
        ) from error
    except BotoCoreError as error:
        raise LocalStackError(
            f"The emulator at {aws} stopped answering: {error}",
            remedy="See what it says, and start it again.",
        ) from error


def _ecs_options(
    options: Options, aws: str, own: Mapping[str, str], jobs: Mapping[str, JobFolder], faults: Faults
) -> local_ecs.Options:
    vault = client("secretsmanager", aws)

    def secret(reference: str) -> str:
        try:
            return str(vault.get_secret_value(SecretId=reference)["SecretString"])
        except ClientError as error:
            raise LookupError(error.response["Error"]["Message"]) from error

    told = local_ecs.Options(
        images=images_of(jobs, options.images),
        containers=Containers(builds=builds_of(jobs, project())) if options.containers else None,
        environment={
            "AWS_ENDPOINT_URL": aws,
            **({} if options.containers else {"PATH": _path()}),
            **own,
            **CREDENTIALS,
            **NO_PROXY,
            **options.task_environment,
        },
        secrets=secret,
        cloudwatch=client("logs", aws),
        events=aws,
        states=own[LEADS_TO],
        warm=(*WARM, "psycopg"),
        faults=faults.launches,
    )
    return replace(told, **dict[str, Any](options.fargate))


def _path() -> str:
    """Where processes find programs: `python` is this one, with what it has."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _deploy(
    connect: Connect, options: Options, root: Path, dsn: str, jobs: Mapping[str, JobFolder]
) -> Deployed:
    declared = read_template(root)["Parameters"]
    images = {one.parameter: one.image for one in jobs.values() if one.parameter in declared}
    others = {"HeartbeatSeconds": str(options.heartbeat_seconds)}
    parameters = _NETWORK | images | others | make_targets(connect, dsn)
    return deploy(connect, root, NAME, parameters, {name: one.job for name, one in jobs.items()})


def _hand_over(connect: Connect, up: Stack, jobs: Mapping[str, JobFolder], note: Note) -> None:
    own = up.client("ecs")
    functions = up.deployed.of_type("AWS::Lambda::Function")
    give_environment(connect, functions, _own(up.stepfunctions, up.ecs.endpoint))
    up.faults.lead_functions(functions, lambda name, more: give_environment(connect, [name], more))
    make_tasks(connect, up.deployed, up.ecs, own)
    make_machines(connect, up.deployed, up.client("stepfunctions"))
    defined = " ".join(up.deployed.of_type("AWS::ECS::TaskDefinition"))
    for name, one in jobs.items():
        if f"/{NAME}-{name}-write:" not in defined:
            variables = {"TRUEUP_TABLE": up.table, "TRUEUP_BUCKET": up.bucket}
            register(own, NAME, one, variables, f"/trueup/{NAME}/tasks")
            note(f"{name} is not in template.yaml; its tasks are defined by its job file alone.")


def _own(stepfunctions: str, ecs: str) -> dict[str, str]:
    """Where the servers are that are not the emulator's."""
    return {LEADS_TO: stepfunctions, "AWS_ENDPOINT_URL_ECS": ecs}
