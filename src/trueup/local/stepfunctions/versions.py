"""Versions and aliases of machines ([dg:concepts-state-machine-version], [dg:concepts-state-machine-alias]).

A version keeps a revision for good; an alias sends each new execution to one of up to two versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.clock import Clock
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.machines import Machines, Revision, StateMachine, no_machine
from trueup.local.stepfunctions.values import Json

MAX_VERSIONS = 1_000
MAX_ALIASES = 100
"""Per machine: aws-facts section 1.1 [dg:service-quotas]."""
_INITIAL = "INITIAL"
"""How a request names the revision of a machine that was never updated [botocore]."""


@dataclass(slots=True)
class Version:
    """A published revision."""

    arn: str
    number: int
    revision: Revision
    description: str | None
    created_at: float


@dataclass(slots=True)
class Alias:
    """A name for versions; `routes` are their ARNs with the percentage that each gets."""

    arn: str
    name: str
    description: str | None
    routes: list[tuple[str, int]]
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class Target:
    """What an ARN names to be started: a revision, and by which version and alias it was found."""

    machine: StateMachine
    revision: Revision
    version_arn: str | None = None
    alias_arn: str | None = None
    trace_header: str | None = None
    """What whoever starts it passes to it."""


class Versions:
    """Versions and aliases of all machines."""

    def __init__(self, machines: Machines, clock: Clock, chance: Chance) -> None:
        self._machines = machines
        self._clock = clock
        self._chance = chance

    def resolve(self, arn: str) -> Target:
        """What the ARN of a machine, a version or an alias stands for; of an alias, by chance and weight.

        Raises ApiError (StateMachineDoesNotExist).
        """
        machine_arn, qualifier = split(arn)
        machine = self._machines.find(machine_arn)
        if qualifier is None:
            return Target(machine, machine.revision)
        alias = machine.aliases.get(qualifier)
        version_arn = self._choose(alias) if alias else arn
        version = _version(machine, version_arn)
        if version is None:
            raise no_machine(arn)
        return Target(machine, version.revision, version.arn, alias.arn if alias else None)

    def _choose(self, alias: Alias) -> str:
        drawn = self._chance.between(0, 100)
        for arn, weight in alias.routes:
            if drawn < weight:
                return arn
            drawn -= weight
        raise AssertionError("the weights of an alias sum up to 100")

    # Versions.

    def publish(self, arn: str, revision_id: str | None = None, description: str | None = None) -> Version:
        """A version of the present revision, or the one there is. Raises ApiError."""
        machine = self._machines.find(arn)
        if revision_id is not None and revision_id != (machine.revision.id or _INITIAL):
            raise ApiError(
                "ConflictException",
                f"Failed to publish the State Machine version for revision {revision_id}. "
                f"The current State Machine revision is {machine.revision.id or _INITIAL}.",
            )
        newest = machine.versions.get(machine.last_version)
        if newest is not None and newest.revision is machine.revision:
            return newest
        if len(machine.versions) >= MAX_VERSIONS:
            raise ApiError(
                "ServiceQuotaExceededException", f"A state machine has at most {MAX_VERSIONS} versions"
            )
        machine.last_version += 1
        number = machine.last_version
        made = Version(f"{arn}:{number}", number, machine.revision, description, self._clock.now())
        machine.versions[number] = made
        return made

    def find_version(self, arn: str) -> Version:
        """A version. Raises ApiError (StateMachineDoesNotExist)."""
        machine = self._machines.find(split(arn)[0])
        version = _version(machine, arn)
        if version is None:
            raise no_machine(arn)
        return version

    def delete_version(self, arn: str) -> None:
        """Forget a version; one that is not there is forgotten already. Raises ApiError."""
        try:
            machine = self._machines.find(split(arn)[0])
        except ApiError:
            return
        users = [alias.name for alias in machine.aliases.values() if arn in dict(alias.routes)]
        if users:
            raise ApiError(
                "ConflictException",
                "Version to be deleted must not be referenced by an alias. "
                f"Current list of aliases referencing this version: [{', '.join(users)}]",
            )
        version = _version(machine, arn)
        if version is not None:
            del machine.versions[version.number]

    # Aliases.

    def create_alias(
        self, name: str, description: str | None, routing: Sequence[Mapping[str, Json]]
    ) -> Alias:
        """A new alias, or the one that a like request made. Raises ApiError."""
        routes, machine = self._routes(routing)
        existing = machine.aliases.get(name)
        if existing is not None:
            if (existing.description, existing.routes) == (description, routes):
                return existing
            raise ApiError(
                "ConflictException",
                f"Failed to create alias because an alias with the name '{name}' and another configuration "
                "already exists.",
            )
        if len(machine.aliases) >= MAX_ALIASES:
            raise ApiError(
                "ServiceQuotaExceededException", f"A state machine has at most {MAX_ALIASES} aliases"
            )
        now = self._clock.now()
        made = machine.aliases[name] = Alias(f"{machine.arn}:{name}", name, description, routes, now, now)
        return made

    def update_alias(
        self, arn: str, description: str | None, routing: Sequence[Mapping[str, Json]] | None
    ) -> Alias:
        """Change an alias; what is None stays. Raises ApiError."""
        alias = self.find_alias(arn)
        if routing is not None:
            routes, machine = self._routes(routing)
            if machine.arn != split(arn)[0]:
                raise ApiError("ValidationException", "An alias points to versions of its own state machine")
            alias.routes = routes
        if description is not None:
            alias.description = description
        alias.updated_at = self._clock.now()
        return alias

    def find_alias(self, arn: str) -> Alias:
        """An alias. Raises ApiError (ResourceNotFound)."""
        machine_arn, name = split(arn)
        try:
            return self._machines.find(machine_arn).aliases[name or ""]
        except (ApiError, KeyError):
            raise _not_found(arn) from None

    def delete_alias(self, arn: str) -> None:
        """Forget an alias. Raises ApiError (ResourceNotFound)."""
        alias = self.find_alias(arn)
        del self._machines.find(split(arn)[0]).aliases[alias.name]

    def aliases_of(self, arn: str) -> list[Alias]:
        """The aliases of a machine, or of one version of it, by name. Raises ApiError."""
        machine_arn, number = split(arn)
        aliases = self._machines.find(machine_arn).aliases
        chosen = [one for one in aliases.values() if number is None or arn in dict(one.routes)]
        return sorted(chosen, key=lambda alias: alias.name)

    def _routes(self, routing: Sequence[Mapping[str, Json]]) -> tuple[list[tuple[str, int]], StateMachine]:
        routes = [(str(route["stateMachineVersionArn"]), int(route["weight"])) for route in routing]
        if sum(weight for _, weight in routes) != 100:
            raise ApiError("ValidationException", "Sum of routing configuration weights must equal 100")
        if len({arn for arn, _ in routes}) < len(routes):
            raise ApiError("ValidationException", "Routing configuration must contain distinct versions")
        if len({split(arn)[0] for arn, _ in routes}) > 1:
            raise ApiError("ValidationException", "Routing configuration must be of one state machine")
        for arn, _ in routes:
            try:
                self.find_version(arn)
            except ApiError as error:
                raise _not_found(arn) from error
        return routes, self._machines.find(split(routes[0][0])[0])


def split(arn: str) -> tuple[str, str | None]:
    """The machine's own ARN, and the version or alias that follows it."""
    parts = arn.split(":")
    return ":".join(parts[:7]), parts[7] if len(parts) > 7 else None


def _version(machine: StateMachine, arn: str) -> Version | None:
    number = split(arn)[1] or ""
    return machine.versions.get(int(number)) if number.isdecimal() else None


def _not_found(arn: str) -> ApiError:
    return ApiError("ResourceNotFound", f"Request references a resource that does not exist: '{arn}'")
