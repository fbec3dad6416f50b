"""Services in a test: a Fargate whose scheduler looks once a second, by a clock that the test moves."""

from __future__ import annotations

from typing import Any

from trueup.local.ecs.api.operations import perform
from trueup.local.ecs.tasks import Status, Task

from .ecs_cases import Case


class ServiceCase(Case):
    """A case with the calls of services."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"pace": 1.0, **settings})
        self.roles: dict[str, str] = {}

    def api(self, operation: str, **body: Any) -> dict[str, Any]:
        return perform(self.fargate, operation, body)

    async def create(self, desired: int, **body: Any) -> dict[str, Any]:
        """A service `work` of the family `job`, as it is two looks later."""
        self.api("CreateService", serviceName="work", taskDefinition="job", desiredCount=desired, **body)
        return await self.later(2)

    async def update(self, seconds: float = 2, **body: Any) -> dict[str, Any]:
        self.api("UpdateService", service="work", **body)
        return await self.later(seconds)

    async def later(self, seconds: float) -> dict[str, Any]:
        await self.clock.pass_(seconds)
        return self.told()

    def told(self) -> dict[str, Any]:
        (service,) = self.api("DescribeServices", services=["work"])["services"]
        return dict(service)

    def said(self) -> list[str]:
        """What the service said, the oldest first, without its name."""
        words = [event["message"] for event in reversed(self.told()["events"])]
        assert all(word.startswith("(service work) ") for word in words)
        return [word.removeprefix("(service work) ") for word in words]

    def running(self) -> list[Task]:
        return [task for task in self.fargate.tasks("default") if task.status is Status.RUNNING]

    def protect(self, *tasks: Task, **body: Any) -> dict[str, Any]:
        given = {"protectionEnabled": True, **body}
        return self.api(
            "UpdateTaskProtection", cluster="default", tasks=[task.arn for task in tasks], **given
        )

    def announced(self, kind: str) -> list[tuple[str, str]]:
        """What EventBridge heard of services: the type and the name of each event of a kind."""
        details = [event["detail"] for event in self.events if event["detail-type"] == kind]
        return [(detail["eventType"], detail["eventName"]) for detail in details]
