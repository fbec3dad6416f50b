"""What a path can see: the state's data (`$`), the context object (`$$`) and variables (`$name`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.values import Json


class Variables:
    """Variables of one scope over those of the scopes around it ([dg:workflow-variables]).

    An inner scope reads what is outside of it and writes its own only.
    """

    __slots__ = ("_outer", "_own")

    def __init__(self, outer: Variables | None = None) -> None:
        self._own: dict[str, Json] = {}
        self._outer = outer

    def find(self, name: str) -> Json:
        """A variable's value. Raises KeyError where nobody assigned it."""
        if name in self._own:
            return self._own[name]
        if self._outer is None:
            raise KeyError(name)
        return self._outer.find(name)

    @property
    def own(self) -> Mapping[str, Json]:
        """The variables of this scope alone."""
        return self._own

    def assign(self, values: Mapping[str, Json]) -> None:
        """Set variables of this scope, all at once."""
        self._own.update(values)

    def copy(self, outer: Variables | None = None) -> Variables:
        """These variables as they are now, for a redrive to start from; `outer` will be around them."""
        twin = Variables(self._outer if outer is None else outer)
        if self._own:
            twin._own.update(self._own)
        return twin


@dataclass(slots=True)
class Scope:
    """What the expressions of one state are evaluated in. The context is built when first asked for."""

    data: Json
    context: Callable[[], Json]
    variables: Variables = field(default_factory=Variables)
    chance: Chance = field(default_factory=Chance)

    def over(self, data: Json) -> Scope:
        """The same context and variables over other data."""
        return Scope(data, self.context, self.variables, self.chance)
