"""Fargate: starts tasks, knows them while ECS would, and ends them. It lives on one event loop."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueup.local.ecs import run_request
from trueup.local.ecs.awslogs import AwsLogs
from trueup.local.ecs.clock import Clock, WallClock
from trueup.local.ecs.clusters import Clusters
from trueup.local.ecs.definitions import Definitions
from trueup.local.ecs.describing import event, state_change
from trueup.local.ecs.environment import Secrets, compose, no_secrets
from trueup.local.ecs.errors import ApiError, invalid
from trueup.local.ecs.faults import Faults, Launch, NoFaults, Refusal
from trueup.local.ecs.images import Image, Images
from trueup.local.ecs.launching import Launcher, Order
from trueup.local.ecs.life import Life, Surroundings
from trueup.local.ecs.metadata import container_labels
from trueup.local.ecs.names import Place, new_task_id
from trueup.local.ecs.protection import BLOCKED, blocked
from trueup.local.ecs.run_request import RunRequest
from trueup.local.ecs.scheduler import Scheduler
from trueup.local.ecs.service_book import Ground, Services
from trueup.local.ecs.tasks import STOPPED_BY_USER, Container, Stop, StopCode, Task

log = logging.getLogger(__name__)

HOUR = 3600.0
PACE = 0.5

Document = dict[str, Any]
Sink = Callable[[Document], None]
"""Takes an event as EventBridge delivers it. Called on Fargate's loop: it must not block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What Fargate is made of, and how long things take (seconds)."""

    images: Images
    launcher: Launcher
    logs: Path
    place: Place = field(default_factory=Place)
    clock: Clock = field(default_factory=WallClock)
    faults: Faults = field(default_factory=NoFaults)
    sink: Sink | None = None
    secrets: Secrets = no_secrets
    cloudwatch: Any | None = None
    """A boto3 client of CloudWatch Logs, for definitions with the driver awslogs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What every task gets: PATH, endpoints, credentials."""
    cold_start: float = 0.0
    deprovision: float = 0.0
    kept: float = HOUR
    """How long a STOPPED task is known (aws-facts section 3, row Stopped tasks visible)."""
    unseen: float = 0.0
    """How long a new task is MISSING: ECS is eventually consistent (same section, row Consistency)."""
    pace: float = PACE
    """How often the scheduler of services looks; events of real services are some 10 s apart."""
    healthy_after: float = 0.0
    """How long a service's task runs before it counts as healthy: 40 on AWS ([botocore ecs],
    DeploymentConfiguration)."""


@dataclass(slots=True)
class _Token:
    """What a clientToken was used for."""

    request: str
    tasks: list[Task]


class Fargate:
    """The tasks. `address` is where the metadata endpoint answers; the server sets it when it knows."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.place = settings.place
        self.clusters = Clusters(settings.place)
        self.definitions = Definitions(settings.place)
        self.faults = settings.faults
        self.lost: set[str] = set()
        """ARNs of tasks that DescribeTasks does not know until they are taken out of here."""
        self.address = ""
        self._awslogs = AwsLogs(settings.cloudwatch, settings.clock)
        self._lives: dict[str, Life] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._tokens: dict[str, _Token] = {}
        self._calls = 0
        self._started = 0
        self.services = Services(self._ground())
        self._around = Surroundings(
            clock=settings.clock,
            images=settings.images,
            launcher=settings.launcher,
            order=self._order,
            changed=self._tell,
            cold_start=settings.cold_start,
            deprovision=settings.deprovision,
        )

    def _ground(self) -> Ground:
        settings = self._settings
        scheduler = Scheduler(
            now=self.now,
            start=self.start,
            stop=lambda task, stop: self._lives[task.task_id].stop(stop),
            announce=self._announce,
            healthy_after=settings.healthy_after,
        )
        return Ground(
            place=self.place,
            clock=settings.clock,
            clusters=self.clusters,
            definitions=self.definitions,
            scheduler=scheduler,
            pace=settings.pace,
        )

    def now(self) -> float:
        """Seconds since 1970, by the clock of the tasks."""
        return self._settings.clock.now()

    def run(self, body: Mapping[str, Any]) -> tuple[list[Task], list[Refusal]]:
        """RunTask: the tasks that were started, or why none was. Raises ApiError."""
        if str(body.get("group") or "").startswith("service:"):
            raise invalid("Invalid namespace for group.")  # the wording: abicky/ecsmec
        request = run_request.read(body, self.clusters, self.definitions)
        token = body.get("clientToken")
        text = json.dumps({**body, "clientToken": None}, sort_keys=True)
        if token in self._tokens:
            return self._again(self._tokens[token], text), []
        refusal = self._refused(request)
        if refusal is not None:
            refusal.raise_error()
            return [], [refusal] * request.count
        tasks = [self._begin(request) for _ in range(request.count)]
        if token is not None:
            self._tokens[token] = _Token(text, tasks)
        return tasks, []

    def start(self, request: RunRequest) -> Task | Refusal:
        """A task of a service, or why there is none."""
        return self._refused(request) or self._begin(request)

    def _refused(self, request: RunRequest) -> Refusal | None:
        self._calls += 1
        self._forget_old()
        return self.faults.refuses(Launch(request.definition.family, self._calls, request.environment))

    def _again(self, used: _Token, text: str) -> list[Task]:
        """Source: API reference, RunTask, ConflictException; its message is ours."""
        if used.request == text:
            return used.tasks
        raise ApiError(
            "ConflictException",
            "The provided clientToken is already in use with a different RunTask request.",
            more={"resourceIds": [task.arn for task in used.tasks]},
        )

    def _begin(self, request: RunRequest) -> Task:
        identifier = new_task_id()
        self._started += 1
        task = Task(
            task_id=identifier,
            arn=self.place.task(request.cluster.name, identifier),
            cluster=request.cluster.name,
            cluster_arn=request.cluster.arn,
            definition=request.definition,
            container=Container(
                name=str(request.container["name"]),
                image=str(request.container["image"]),
                runtime_id=f"{identifier}-{self._started:010}",
                definition=request.container,
                override=request.override,
            ),
            cpu=request.cpu,
            memory=request.memory,
            overrides=request.overrides,
            group=request.group,
            started_by=request.started_by,
            capacity_provider=request.capacity_provider,
            subnet=request.subnet,
            service=request.service,
            role=request.role,
            tags=request.tags,
            times={"createdAt": self.now()},
        )
        fate = self.faults.fate(Launch(task.family, self._started, request.environment, task.arn))
        life = self._lives[identifier] = Life(task, self._around, fate)
        running = self._running[identifier] = asyncio.create_task(life.run())
        running.add_done_callback(lambda _: self._running.pop(identifier))
        return task

    def _forget_old(self) -> None:
        gone = [task_id for task_id, life in self._lives.items() if not self._kept(life.task)]
        for task_id in gone:
            del self._lives[task_id]
        known = self._lives
        self._tokens = {
            token: used
            for token, used in self._tokens.items()
            if any(task.task_id in known for task in used.tasks)
        }

    def _kept(self, task: Task) -> bool:
        return not task.stopped or self.now() < task.times["stoppedAt"] + self._settings.kept

    def _seen(self, task: Task) -> bool:
        return self.now() >= task.times["createdAt"] + self._settings.unseen and self._kept(task)

    def tasks(self, cluster: str) -> list[Task]:
        """Those of a cluster that ECS knows, the oldest first."""
        return [
            life.task
            for life in self._lives.values()
            if life.task.cluster == cluster and self._seen(life.task)
        ]

    def find(self, cluster: str, identifier: str) -> Task | None:
        """A task of a cluster, by its id; None where ECS does not know it: not yet, or no more."""
        life = self._lives.get(identifier)
        if life is None or life.task.cluster != cluster or not self._seen(life.task):
            return None
        return life.task

    def stop(self, task: Task, reason: str | None) -> None:
        """StopTask. A task that has stopped, or was told to, keeps its first reason."""
        self._lives[task.task_id].stop(Stop(StopCode.USER, reason or STOPPED_BY_USER))

    def protect(self, task: Task, seconds: float | None) -> str | None:
        """Protect a service's task for so long, or no more. Gives the reason where AWS would not."""
        if seconds is None:
            task.protected_until = None
            return None
        siblings = [other for other in self.tasks(task.cluster) if other.service == task.service]
        service = self.services.find(task.cluster, task.service or "")
        if blocked(task, siblings, service.desired if service else 0, self.now()):
            return BLOCKED
        task.protected_until = self.now() + seconds
        return None

    def life(self, identifier: str) -> Life:
        """The life of a task, to kill, freeze, thaw or interrupt it. Raises ApiError."""
        life = self._lives.get(identifier.rpartition("/")[2])
        if life is None:
            raise ApiError("InvalidParameterException", "The referenced task was not found.")
        return life

    def by_container(self, runtime_id: str) -> Task | None:
        """The task whose metadata are asked for."""
        life = self._lives.get(runtime_id.partition("-")[0])
        return None if life is None else life.task

    def log(self, identifier: str) -> Path:
        """The file that a task's container writes to; it is there once the container was started."""
        return self._settings.logs / f"{identifier.rpartition('/')[2]}.log"

    async def _order(self, task: Task, image: Image) -> Order:
        settings, container = self._settings, task.container
        environment = await compose(
            task, image, settings.environment, settings.secrets, self.address, self.place
        )
        command = container.override.get("command") or container.definition.get("command")
        entrypoint = container.definition.get("entryPoint")
        path = self.log(task.task_id)
        await self._awslogs.begin(task, path)
        return Order(
            name=task.task_id,
            argv=image.argv(entrypoint, command),
            folder=image.folder,
            environment=environment,
            log=path,
            image=image.name or container.image,
            entrypoint=entrypoint,
            command=command,
            cpu=int(task.cpu),
            memory=container.memory or int(task.memory),
            labels=container_labels(task),
        )

    def _tell(self, task: Task) -> None:
        if task.container.status == "STOPPED":
            self._awslogs.ended(task)
        self._send(state_change(task, self.place, self.now(), str(uuid.uuid4())))

    def _announce(self, detail_type: str, arn: str, detail: Document) -> None:
        identifier = str(uuid.uuid4())
        self._send(event(detail_type, arn, detail, place=self.place, now=self.now(), event_id=identifier))

    def _send(self, told: Document) -> None:
        if self._settings.sink is None:
            return
        try:
            self._settings.sink(told)
        except Exception:  # which is no reason to end whatever it tells of
            log.exception("an event of %s was not taken", told["resources"])

    async def close(self) -> None:
        """End everything, at once."""
        await self.services.close()
        running = list(self._running.values())
        for life in running:
            life.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._awslogs.close()
        await self._settings.launcher.close()
