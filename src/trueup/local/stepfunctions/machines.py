"""State machines by ARN: created, updated, deleted, tagged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.clock import Clock
from trueup.local.stepfunctions.errors import ApiError, DefinitionError
from trueup.local.stepfunctions.model import Machine
from trueup.local.stepfunctions.parsing import parse_definition
from trueup.local.stepfunctions.tags import tag
from trueup.local.stepfunctions.values import Json

if TYPE_CHECKING:
    from trueup.local.stepfunctions.versions import Alias, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What an update changes and a version keeps. `id` is None until the first update."""

    role_arn: str
    definition: str
    machine: Machine
    made_at: float
    logging: Json = None
    tracing: Json = None
    id: str | None = None

    def same(self, definition: str, settings: Mapping[str, Json]) -> bool:
        """Whether a request would make this very revision."""
        wanted = (definition, settings.get("logging"), settings.get("tracing"))
        return wanted == (self.definition, self.logging, self.tracing)


@dataclass(slots=True)
class StateMachine:
    """A machine as the API knows it. Executions keep the definition that they were started with."""

    arn: str
    name: str
    created_at: float
    updated_at: float
    revision: Revision
    express: bool = False
    """Whether its executions are Express ones, which last five minutes at most and leave nothing behind."""
    deleting: bool = False
    """Whether it is deleted as soon as its executions have ended."""
    tags: dict[str, str] = field(default_factory=dict)
    versions: dict[int, Version] = field(default_factory=dict)
    aliases: dict[str, Alias] = field(default_factory=dict)
    last_version: int = 0
    """The number of the newest version, deleted ones included: numbers are not given twice."""


class Machines:
    """All machines of an account and region."""

    def __init__(self, clock: Clock, chance: Chance, region: str, account: str) -> None:
        self._clock = clock
        self._chance = chance
        self._prefix = f"arn:aws:states:{region}:{account}:stateMachine:"
        self._by_arn: dict[str, StateMachine] = {}

    def create(
        self,
        name: str,
        definition: str,
        role_arn: str,
        tags: Mapping[str, str] | None = None,
        *,
        express: bool = False,
        **settings: Json,
    ) -> StateMachine:
        """A new machine, or the one that a like request made. `settings` are logging and tracing.

        Another role or other tags make no other request, and change nothing [botocore]. Raises ApiError.
        """
        arn = self._prefix + name
        existing = self._by_arn.get(arn)
        if existing is not None:
            if existing.deleting:
                raise _deleting(arn)
            if existing.express is express and existing.revision.same(definition, settings):
                return existing
            raise ApiError("StateMachineAlreadyExists", f"State Machine Already Exists: '{arn}'")
        now = self._clock.now()
        machine = compile_definition(definition, express=express)
        revision = Revision(
            role_arn=role_arn, definition=definition, machine=machine, made_at=now, **settings
        )
        made = StateMachine(arn, name, now, now, revision, express)
        tag(arn, made, tags or {})
        self._by_arn[arn] = made
        return made

    def update(self, arn: str, *, definition: str | None, settings: Mapping[str, Json]) -> StateMachine:
        """Change a machine for the executions to come. `settings` are fields of Revision. Raises ApiError."""
        found = self.find_alive(arn)
        changes = dict(settings)
        if definition is not None:
            machine = compile_definition(definition, express=found.express)
            changes |= {"machine": machine, "definition": definition}
        now = found.updated_at = self._clock.now()
        found.revision = replace(found.revision, **changes, made_at=now, id=self._chance.uuid())
        return found

    def delete(self, arn: str) -> None:
        """Forget a machine with its versions and aliases; one that is not there is forgotten already."""
        self._by_arn.pop(arn, None)

    def find(self, arn: str) -> StateMachine:
        """A machine by its own ARN. Raises ApiError (StateMachineDoesNotExist)."""
        found = self._by_arn.get(arn)
        if found is None:
            raise no_machine(arn)
        return found

    def find_alive(self, arn: str) -> StateMachine:
        """A machine that is not being deleted. Raises ApiError (StateMachineDeleting as well)."""
        found = self.find(arn)
        if found.deleting:
            raise _deleting(arn)
        return found

    def all(self) -> list[StateMachine]:
        """All machines by name."""
        return sorted(self._by_arn.values(), key=lambda machine: machine.name)


def _deleting(arn: str) -> ApiError:
    return ApiError("StateMachineDeleting", f"State Machine Deleting: '{arn}'")


def no_machine(arn: str) -> ApiError:
    """What whoever asks for a machine that does not exist is told."""
    return ApiError("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{arn}'")


def compile_definition(text: str, *, express: bool = False) -> Machine:
    """Parse a definition for the API. Raises ApiError (InvalidDefinition), worded as AWS words it."""
    try:
        return parse_definition(text, express=express)
    except DefinitionError as error:
        raise ApiError("InvalidDefinition", f"Invalid State Machine Definition: '{error}'") from error
