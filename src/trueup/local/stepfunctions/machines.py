"""State machines by ARN: created, updated, deleted, tagged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.clock import Clock
from trueup.local.stepfunctions.errors import ApiError, DefinitionError
from trueup.local.stepfunctions.model import Machine
from trueup.local.stepfunctions.parsing import parse_definition
from trueup.local.stepfunctions.values import Json

MAX_TAGS = 50


@dataclass(slots=True)
class StateMachine:
    """A machine as the API knows it. Executions keep the definition that they were started with."""

    arn: str
    name: str
    role_arn: str
    definition: str
    machine: Machine
    created_at: float
    updated_at: float
    logging: Json = None
    tracing: Json = None
    revision_id: str | None = None
    """None until the first update."""
    tags: dict[str, str] = field(default_factory=dict)

    def same(self, role_arn: str, definition: str) -> bool:
        """Whether a request would create this very machine."""
        return (self.role_arn, self.definition) == (role_arn, definition)


class Machines:
    """All machines of an account and region."""

    def __init__(self, clock: Clock, chance: Chance, region: str, account: str) -> None:
        self._clock = clock
        self._chance = chance
        self._prefix = f"arn:aws:states:{region}:{account}:stateMachine:"
        self._by_arn: dict[str, StateMachine] = {}

    def create(self, name: str, definition: str, role_arn: str, **settings: Json) -> StateMachine:
        """A new machine, or the one that a like request made. Raises ApiError."""
        arn = self._prefix + name
        existing = self._by_arn.get(arn)
        if existing is not None:
            if existing.same(role_arn, definition):
                return existing
            raise ApiError("StateMachineAlreadyExists", f"State Machine Already Exists: '{arn}'")
        now = self._clock.now()
        machine = compile_definition(definition)
        made = StateMachine(arn, name, role_arn, definition, machine, now, now, **settings)
        self._by_arn[arn] = made
        return made

    def update(
        self, arn: str, *, definition: str | None, role_arn: str | None, settings: Json
    ) -> StateMachine:
        """Change a machine for the executions to come. Raises ApiError."""
        found = self.find(arn)
        if definition is not None:
            found.machine, found.definition = compile_definition(definition), definition
        if role_arn is not None:
            found.role_arn = role_arn
        for name, value in settings.items():
            setattr(found, name, value)
        found.updated_at, found.revision_id = self._clock.now(), self._chance.uuid()
        return found

    def delete(self, arn: str) -> None:
        """Forget a machine; one that is not there is forgotten already."""
        self._by_arn.pop(arn, None)

    def find(self, arn: str) -> StateMachine:
        """A machine. Raises ApiError (StateMachineDoesNotExist)."""
        found = self._by_arn.get(arn)
        if found is None:
            raise ApiError("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{arn}'")
        return found

    def all(self) -> list[StateMachine]:
        """All machines by name."""
        return sorted(self._by_arn.values(), key=lambda machine: machine.name)

    def tag(self, arn: str, tags: Mapping[str, str]) -> None:
        """Add tags. Raises ApiError."""
        found = self._tagged(arn)
        if len({**found.tags, **tags}) > MAX_TAGS:
            raise ApiError("TooManyTags", f"A resource has at most {MAX_TAGS} tags: '{arn}'")
        found.tags.update(tags)

    def untag(self, arn: str, keys: Iterable[str]) -> None:
        """Remove tags. Raises ApiError."""
        found = self._tagged(arn)
        for key in keys:
            found.tags.pop(key, None)

    def tags(self, arn: str) -> Mapping[str, str]:
        """The tags of a machine. Raises ApiError."""
        return self._tagged(arn).tags

    def _tagged(self, arn: str) -> StateMachine:
        try:
            return self.find(arn)
        except ApiError as error:
            raise ApiError("ResourceNotFound", f"Resource not found: '{arn}'") from error


def compile_definition(text: str) -> Machine:
    """Parse a definition for the API. Raises ApiError (InvalidDefinition), worded as AWS words it."""
    try:
        return parse_definition(text)
    except DefinitionError as error:
        raise ApiError("InvalidDefinition", f"Invalid State Machine Definition: '{error}'") from error
