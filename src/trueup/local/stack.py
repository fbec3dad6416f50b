"""The local stack: the emulator, PostgreSQL, ECS and Step Functions, with template.yaml deployed to them.

    AWS around it     MiniStack, a process; or an emulator of one's own
    PostgreSQL        a process
    ECS, the engine   threads of this process; tasks are processes
    functions         run by the emulator, and find ECS and the engine by AWS_ENDPOINT_URL_<SERVICE>

Everything ends with the block, and when this process is killed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from trueup.artifacts import Artifacts
from trueup.artifacts.s3 import S3Store
from trueup.errors import LocalStackError
from trueup.ledger import Ledger
from trueup.ledger.dynamo import DynamoTable
from trueup.local import ecs as local_ecs
from trueup.local.aws import REGION, Connect, client, connector, ministack
from trueup.local.deploying import Deployed, deploy, give_environment, make_machines, make_tasks
from trueup.local.ecs import WARM, Ecs, Faults, NoFaults
from trueup.local.job_tasks import JobFolder, find_jobs, images_of, register
from trueup.local.packaging import project, read_template
from trueup.local.postgres import postgres
from trueup.local.serving import listen, url_of
from trueup.local.stepfunctions import Calls, stepfunctions
from trueup.local.targets import make_targets

NAME = "trueup"
CLUSTER = NAME
"""The template calls the cluster as the stack."""
SERVICES = (
    "apigateway", "cloudformation", "cloudwatch", "dynamodb", "ecs", "events", "iam", "lambda", "logs", "s3",
    "scheduler", "secretsmanager", "sns", "sqs", "stepfunctions", "sts",
)  # fmt: skip
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
    faults: Faults = field(default_factory=NoFaults)
    between: Callable[[Calls], Calls] | None = None
    """Stands between the machines and the services that they call: for calls that go wrong on purpose."""
    scale: float = 1.0
    timeouts: float = 1.0
    heartbeat_seconds: int = 15
    """How long a task may be silent that is awaited by its word; on AWS long enough for a cold start."""
    task_environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stack:
    """A stack that is up. Any thread may use it."""

    aws: str
    stepfunctions: str
    ecs: Ecs
    dsn: str
    deployed: Deployed
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
        return f"{self.aws}/_aws/execute-api/{api}/$default"

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
        return {"AWS_ENDPOINT_URL": self.aws, **_own(self.stepfunctions, self.ecs.endpoint), **CREDENTIALS}


@contextmanager
def stack(options: Options | None = None, note: Note = lambda line: None) -> Iterator[Stack]:
    """A stack with the template deployed, and empty targets for the sample jobs, as long as the block lasts.

    `note` hears what happens, in a line each. Raises LocalStackError, UsageError for job files.
    """
    options = options or Options()
    root = project()
    jobs = find_jobs(*dict.fromkeys(folder.resolve() for folder in (root, options.jobs) if folder))
    with ExitStack() as ups:
        note("Starting MiniStack, PostgreSQL, ECS and Step Functions …")
        aws = options.aws or ups.enter_context(ministack(SERVICES))
        dsn = ups.enter_context(postgres())
        machines = ups.enter_context(listen())
        ecs = ups.enter_context(local_ecs.serve(_ecs_options(options, aws, url_of(machines), jobs)))
        endpoints = {"*": aws, "events": aws, "ecs": ecs.endpoint}
        engine = ups.enter_context(
            stepfunctions(
                endpoints,
                listening=machines,
                scale=options.scale,
                timeouts=options.timeouts,
                between=options.between,
            )
        )
        note("Deploying template.yaml …")
        connect = connector(aws)
        deployed = _deploy(connect, options, root, dsn, jobs)
        up = Stack(aws, engine, ecs, dsn, deployed)
        _hand_over(connect, up, jobs, note)
        yield up


def _ecs_options(options: Options, aws: str, engine: str, jobs: Mapping[str, JobFolder]) -> local_ecs.Options:
    vault = client("secretsmanager", aws)

    def secret(reference: str) -> str:
        try:
            return str(vault.get_secret_value(SecretId=reference)["SecretString"])
        except ClientError as error:
            raise LookupError(error.response["Error"]["Message"]) from error

    return local_ecs.Options(
        images=images_of(jobs),
        environment={
            "AWS_ENDPOINT_URL": aws,
            "AWS_ENDPOINT_URL_SFN": engine,
            **CREDENTIALS,
            **options.task_environment,
        },
        secrets=secret,
        warm=(*WARM, "psycopg"),
        faults=options.faults,
    )


def _deploy(
    connect: Connect, options: Options, root: Path, dsn: str, jobs: Mapping[str, JobFolder]
) -> Deployed:
    declared = read_template(root)["Parameters"]
    images = {one.parameter: one.image for one in jobs.values() if one.parameter in declared}
    others = {"HeartbeatSeconds": str(options.heartbeat_seconds)}
    try:
        targets = make_targets(connect, dsn)
    except ClientError as error:
        raise LocalStackError(
            f"The targets of the sample jobs could not be made: {error.response['Error']['Message']}",
            remedy="Where a stack was deployed to this emulator before, remove it or take an empty one.",
        ) from error
    parameters = _NETWORK | images | others | targets
    return deploy(connect, root, NAME, parameters, {name: one.job for name, one in jobs.items()})


def _hand_over(connect: Connect, up: Stack, jobs: Mapping[str, JobFolder], note: Note) -> None:
    own = up.client("ecs")
    give_environment(connect, up.deployed, _own(up.stepfunctions, up.ecs.endpoint))
    make_tasks(connect, up.deployed, up.ecs, own)
    make_machines(connect, up.deployed, up.client("stepfunctions"))
    defined = " ".join(up.deployed.of_type("AWS::ECS::TaskDefinition"))
    for name, one in jobs.items():
        if f"/{NAME}-{name}-write:" not in defined:
            register(own, NAME, one, {"TRUEUP_TABLE": up.table, "TRUEUP_BUCKET": up.bucket})
            note(f"{name} is not in template.yaml; its tasks are defined by its job file alone.")


def _own(stepfunctions: str, ecs: str) -> dict[str, str]:
    """Where the servers are that are not the emulator's."""
    return {"AWS_ENDPOINT_URL_SFN": stepfunctions, "AWS_ENDPOINT_URL_ECS": ecs}
