"""Task definitions: families whose revisions count up, and are never given twice."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trueup.local.ecs.errors import ApiError, invalid, not_implemented
from trueup.local.ecs.names import Place, family_and_revision, is_name

ACTIVE, INACTIVE = "ACTIVE", "INACTIVE"
MAX_STOP_TIMEOUT = 120
DEFAULT_STOP_TIMEOUT = 30
"""Seconds from SIGTERM to SIGKILL (aws-facts section 3, row Stop)."""

UNITS = 1024
"""CPU units in a vCPU, MiB in a GB."""

CONTAINER_FIELDS = (
    *("name", "image", "essential", "entryPoint", "command", "environment", "secrets", "cpu", "memory"),
    *("memoryReservation", "portMappings", "stopTimeout", "logConfiguration", "dockerLabels"),
)
"""What of a container definition is done, or comes close (docs/ecs.md)."""
GIB = 1024
FARGATE_SIZES: Mapping[int, Collection[int]] = {
    256: (512, 1 * GIB, 2 * GIB),
    512: range(1 * GIB, 4 * GIB + 1, GIB),
    1024: range(2 * GIB, 8 * GIB + 1, GIB),
    2048: range(4 * GIB, 16 * GIB + 1, GIB),
    4096: range(8 * GIB, 30 * GIB + 1, GIB),
    8192: range(16 * GIB, 60 * GIB + 1, 4 * GIB),
    16384: range(32 * GIB, 120 * GIB + 1, 8 * GIB),
}
"""MiB of memory for units of CPU (developer guide, "Task CPU and memory" of Fargate)."""

_SIZE = re.compile(r"([0-9]*\.?[0-9]+)\s*(vcpu|gb)?", re.IGNORECASE)

Document = dict[str, Any]


@dataclass(slots=True)
class Definition:
    """One revision; `document` is what DescribeTaskDefinition tells."""

    document: Document
    tags: list[Document] = field(default_factory=list)

    @property
    def arn(self) -> str:
        """Its ARN, with the revision."""
        return str(self.document["taskDefinitionArn"])

    @property
    def family(self) -> str:
        """Its family."""
        return str(self.document["family"])

    @property
    def revision(self) -> int:
        """Its number in the family."""
        return int(self.document["revision"])

    @property
    def fits_fargate(self) -> bool:
        """Whether it can be run where Fargate is asked for."""
        return "FARGATE" in self.document["compatibilities"]

    @property
    def active(self) -> bool:
        """Whether it can be run."""
        return bool(self.document["status"] == ACTIVE)

    @property
    def containers(self) -> list[Document]:
        """Its container definitions."""
        return list(self.document["containerDefinitions"])


class Definitions:
    """All revisions of all families."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._families: dict[str, dict[int, Definition]] = {}

    def __iter__(self) -> Iterator[Definition]:
        for family in sorted(self._families):
            yield from self._families[family].values()

    def register(self, request: Mapping[str, Any], now: float) -> Definition:
        """A further revision of a family. Raises ApiError where it could not be run on Fargate."""
        _check(request)
        family = str(request["family"])
        revision = max(self._families.get(family, {}), default=0) + 1
        return self._put(request, family, revision, {"registeredAt": now})

    def take_over(self, described: Mapping[str, Any], tags: list[Document] | None = None) -> Definition:
        """A definition as another ECS describes it, under the revision that it has there.

        `described` is the `taskDefinition` of a DescribeTaskDefinition. Taken over again, it is replaced.
        Raises ApiError where it asks for what is not implemented.
        """
        _check_supported(described)
        known = {"registeredAt": 0.0, **described}
        made = self._put(known, str(known["family"]), int(known["revision"]), {})
        made.document["status"] = known.get("status", ACTIVE)
        made.tags = list(tags or [])
        return made

    def _put(self, given: Mapping[str, Any], family: str, revision: int, more: Document) -> Definition:
        document = {name: value for name, value in given.items() if name != "tags"} | more
        document |= {name: _units(document[name]) for name in ("cpu", "memory") if document.get(name)}
        document |= {
            "taskDefinitionArn": self._place.definition(family, revision),
            "family": family,
            "revision": revision,
            "status": ACTIVE,
            "volumes": document.get("volumes", []),
            "placementConstraints": document.get("placementConstraints", []),
        }
        document["compatibilities"] = ["EC2", "FARGATE"] if _fits_fargate(document) else ["EC2"]
        made = Definition(document, list(given.get("tags") or []))
        self._families.setdefault(family, {})[revision] = made
        return made

    def describe(self, reference: str) -> Definition:
        """A revision, or the latest ACTIVE one of a family. INACTIVE ones are described too.

        Raises ApiError in the words of DescribeTaskDefinition (sil-org/ecs-deploy#145).
        """
        found = self._find(reference)
        if found is None:
            raise ApiError("ClientException", "Unable to describe task definition.")
        return found

    def runnable(self, reference: str) -> Definition:
        """What RunTask would run.

        Raises ApiError: ClientException for what is unknown (Cloud-CV/EvalAI#2419), and
        InvalidParameterException for what is INACTIVE (seen with RunTask: DefangLabs/defang#775).
        AWS gives up to ten minutes' grace after deregistering (aws-facts section 2.2); this stack gives none.
        """
        found = self._find(reference)
        if found is None:
            raise ApiError("ClientException", "TaskDefinition not found.")
        if not found.active:
            raise invalid("TaskDefinition is inactive")
        return found

    def deregister(self, reference: str, now: float) -> Definition:
        """Make a revision INACTIVE. Raises ApiError where none is named."""
        if family_and_revision(reference)[1] is None:
            raise ApiError("ClientException", "Revision is missing.")
        found = self._find(reference)
        if found is None:
            raise ApiError("ClientException", "The specified task definition does not exist.")
        found.document |= {"status": INACTIVE, "deregisteredAt": now}
        return found

    def _find(self, reference: str) -> Definition | None:
        family, revision = family_and_revision(reference)
        revisions = self._families.get(family, {})
        if revision is not None:
            return revisions.get(revision)
        active = [number for number, made in revisions.items() if made.active]
        return revisions[max(active)] if active else None


def _units(size: object) -> str:
    """A size in CPU units or MiB, from `1 vCPU` or `2 GB` too (API reference, RegisterTaskDefinition)."""
    found = _SIZE.fullmatch(str(size).strip())
    if found is None:
        raise ApiError("ClientException", f"Invalid setting for task: {size}")
    return str(int(float(found[1]) * UNITS)) if found[2] else found[1]


def _check(request: Mapping[str, Any]) -> None:
    if not is_name(str(request.get("family", ""))):
        raise ApiError(
            "ClientException", "Family should not be null or empty, and has letters, digits, - and _"
        )
    containers = request.get("containerDefinitions") or []
    if not containers:
        raise ApiError("ClientException", "Container list cannot be empty.")
    for container in containers:
        _check_container(container)
    if not any(container.get("essential", True) for container in containers):
        raise ApiError("ClientException", "A task definition needs an essential container.")
    _check_supported(request)
    if "FARGATE" in (request.get("requiresCompatibilities") or []):
        _check_fargate(request)


def _check_container(container: Mapping[str, Any]) -> None:
    for name in ("name", "image"):
        if not container.get(name):
            # The wording: awsdocs/aws-cloudformation-user-guide#612.
            raise ApiError("ClientException", f"Container.{name} should not be null or empty.")
    if not 0 <= (container.get("stopTimeout") or 0) <= MAX_STOP_TIMEOUT:
        raise ApiError("ClientException", f"stopTimeout has to be at most {MAX_STOP_TIMEOUT} on Fargate.")


def _check_fargate(request: Mapping[str, Any]) -> None:
    if request.get("networkMode") != "awsvpc":
        raise ApiError("ClientException", "Fargate only supports network mode 'awsvpc'.")
    for name in ("cpu", "memory"):
        if not request.get(name):
            raise ApiError("ClientException", f"Fargate requires that '{name}' be defined at the task level.")
    check_size(*(int(_units(request[name])) for name in ("cpu", "memory")))


def check_size(cpu: int, memory: int) -> None:
    """Raises ApiError where Fargate has no such pair of units and MiB."""
    if memory not in FARGATE_SIZES.get(cpu, ()):
        # The wording: developer guide, "Invalid CPU or memory value specified".
        raise ApiError("ClientException", "No Fargate configuration exists for given values.")


def _fits_fargate(document: Mapping[str, Any]) -> bool:
    """Whether it has what Fargate needs ([botocore ecs], TaskDefinition, compatibilities)."""
    try:
        _check_fargate(document)
    except ApiError:
        return False
    return True


def _check_supported(given: Mapping[str, Any]) -> None:
    """Refuse what would be ignored. Raises ApiError."""
    system = (given.get("runtimePlatform") or {}).get("operatingSystemFamily")
    if system not in (None, "LINUX"):
        raise not_implemented(f"The operating system {system}", "LINUX")
    if given.get("volumes"):
        raise not_implemented("A task definition with volumes", "task definitions without")
    for container in given.get("containerDefinitions") or []:
        beyond = sorted(name for name in container.keys() - set(CONTAINER_FIELDS) if container[name])
        if beyond:
            raise not_implemented(f"A container with {', '.join(beyond)}", ", ".join(CONTAINER_FIELDS))
        driver = (container.get("logConfiguration") or {}).get("logDriver")
        if driver not in (None, "awslogs"):
            raise not_implemented(f"The log driver {driver}", "awslogs")
