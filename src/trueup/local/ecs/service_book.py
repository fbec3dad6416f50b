"""All services: made, changed and ended by calls, and looked after by the scheduler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trueup.local.ecs import run_request, service_request
from trueup.local.ecs.clock import Clock
from trueup.local.ecs.clusters import Cluster, Clusters
from trueup.local.ecs.definitions import Definitions
from trueup.local.ecs.errors import ApiError, invalid
from trueup.local.ecs.names import Place
from trueup.local.ecs.scheduler import Scheduler
from trueup.local.ecs.services import Deployment, Service, ServiceStatus, new_deployment_id

log = logging.getLogger(__name__)

SERVICE_TAG = "aws:ecs:serviceName"

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What services stand on. `pace` is how often the scheduler looks, in seconds; about 10 on AWS."""

    place: Place
    clock: Clock
    clusters: Clusters
    definitions: Definitions
    scheduler: Scheduler
    pace: float


class Services:
    """Services by cluster and name; INACTIVE ones are remembered."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._services: dict[tuple[str, str], Service] = {}
        self._created: dict[tuple[str, str], Body] = {}
        self._watches: set[asyncio.Task[None]] = set()

    def of(self, cluster: str) -> list[Service]:
        """Those of a cluster, also those that are no more."""
        return [service for (name, _), service in self._services.items() if name == cluster]

    def find(self, cluster: str, reference: str) -> Service | None:
        """A service by its name or ARN."""
        return self._services.get((cluster, reference.rpartition("/")[2]))

    def existing(self, cluster: str, reference: str) -> Service:
        """The same. Raises ApiError (ServiceNotFoundException)."""
        found = self.find(cluster, reference)
        if found is None:
            raise ApiError("ServiceNotFoundException", "Service not found.")
        return found

    def create(self, body: Body) -> Service:
        """CreateService; asked the same again, it gives the same. Raises ApiError."""
        service_request.check_values(body)
        service_request.check_token(body)
        cluster = self._ground.clusters.find(body.get("cluster"))
        name = service_request.service_name(body)
        key = (cluster.name, name)
        known = self._services.get(key)
        if known is not None and known.status is ServiceStatus.DRAINING:
            # The wordings: aws/amazon-ecs-cli, and anyone who creates a service twice.
            raise invalid("Unable to Start a service that is still Draining.")
        if known is not None and known.status is ServiceStatus.ACTIVE:
            if self._created[key] == body:
                return known
            raise invalid("Creation of service was not idempotent.")
        service = self._services[key] = self._make(body, cluster, name)
        self._created[key] = body
        self._ground.scheduler.begin(service, service.primary)
        self._watch(service)
        return service

    def _make(self, body: Body, cluster: Cluster, name: str) -> Service:
        definition = service_request.definition_named(body)
        tags = list(body.get("tags") or [])
        now = self._ground.clock.now()
        return Service(
            name=name,
            arn=self._ground.place.service(cluster.name, name),
            cluster=cluster,
            given=dict(body),
            desired=service_request.desired_count(body),
            plan=service_request.plan_of(body.get("deploymentConfiguration") or {}),
            created_at=now,
            deployments=[self._deployment(name, cluster, body, definition, tags)],
            tags=tags,
        )

    def _deployment(
        self, name: str, cluster: Cluster, given: Body, definition: str, tags: list[dict[str, Any]]
    ) -> Deployment:
        identifier = new_deployment_id()
        call = service_request.run_call(name, cluster.name, given, definition, tags, identifier)
        request = run_request.read(call, self._ground.clusters, self._ground.definitions)
        managed = [{"key": SERVICE_TAG, "value": name}] if given.get("enableECSManagedTags") else []
        now = self._ground.clock.now()
        return Deployment(
            request=replace(request, service=name, tags=[*request.tags, *managed]),
            given=given,
            created_at=now,
            updated_at=now,
            deployment_id=identifier,
        )

    def update(self, body: Body) -> Service:
        """UpdateService. Raises ApiError."""
        service_request.check_values(body)
        cluster = self._ground.clusters.find(body.get("cluster"))
        service = self.existing(cluster.name, str(body["service"]))
        if service.status is not ServiceStatus.ACTIVE:
            # The wording: remind101/empire.
            raise ApiError("ServiceNotActiveException", "Service was not ACTIVE.")
        count = service_request.desired_count({"desiredCount": service.desired, **body})
        plan = service.plan
        if body.get("deploymentConfiguration"):
            given = service_request.told_plan(plan) | dict(body["deploymentConfiguration"])
            plan = service_request.plan_of(given)
        changes = {name: body[name] for name in service_request.UPDATE if name in body}
        self._redeploy(service, changes)
        service.desired, service.plan = count, plan
        service.primary.updated_at = self._ground.clock.now()
        return service

    def _redeploy(self, service: Service, changes: Body) -> None:
        """A new deployment, where what its tasks are made of changes, or where it is forced."""
        made_of = {name: changes[name] for name in service_request.LAUNCH if name in changes}
        if "capacityProviderStrategy" in made_of:
            made_of["launchType"] = None
        named = changes.get("taskDefinition") or service.primary.request.definition.arn
        given = {**service.given, **changes, **made_of}
        made = self._deployment(service.name, service.cluster, given, str(named), service.tags)
        same = made.request.definition is service.primary.request.definition
        service.given = given
        if same and not made_of and not changes.get("forceNewDeployment"):
            return
        service.deployments.insert(0, made)
        self._ground.scheduler.begin(service, made)

    def delete(self, cluster: str, reference: str, *, force: bool) -> Service:
        """DeleteService: it drains, and is INACTIVE once its tasks are gone. Raises ApiError."""
        service = self.existing(cluster, reference)
        if service.status is ServiceStatus.ACTIVE:
            if service.desired > 0 and not force:
                # The wording: any tutorial that cleans up after itself.
                raise invalid("The service cannot be stopped while it is scaled above 0.")
            service.desired = 0
            service.status = ServiceStatus.DRAINING
        return service

    def _watch(self, service: Service) -> None:
        watch = asyncio.get_running_loop().create_task(self._look_after(service))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    async def _look_after(self, service: Service) -> None:
        while service.status is not ServiceStatus.INACTIVE:
            await self._ground.clock.sleep(self._ground.pace)
            try:
                self._ground.scheduler.look(service)
            except Exception:
                log.exception("%s", service.arn)  # the next look may go better; nobody else would look at all

    async def close(self) -> None:
        """Look after nothing any more."""
        for watch in list(self._watches):
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
