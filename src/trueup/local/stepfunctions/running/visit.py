"""One visit to one state: what it sees, what it writes to the history, and how its output is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trueup.local.stepfunctions.errors import DATA_LIMIT, RUNTIME, EvaluationError, StateError
from trueup.local.stepfunctions.history import WHOLE_DATA, History, data
from trueup.local.stepfunctions.model import WHOLE, State, Working
from trueup.local.stepfunctions.paths import Path, place
from trueup.local.stepfunctions.scope import Scope, Variables
from trueup.local.stepfunctions.templates import Template
from trueup.local.stepfunctions.timestamps import iso_millis
from trueup.local.stepfunctions.values import EMPTY, MAX_DEPTH, Document, Json, too_deep, too_large

if TYPE_CHECKING:
    from trueup.local.stepfunctions.running.execution import Execution
    from trueup.local.stepfunctions.running.map_run import MapRun


@dataclass(slots=True)
class Standing:
    """Where a path stood when it entered its latest state: a redrive goes on from here."""

    state: str
    document: Document
    variables: Variables
    entered: int = 0
    """The event of entering that state."""
    inner: Sequence[Strand | None] = ()
    """The paths within that state, of a Parallel or an inline Map; None for an item not yet begun."""
    map_run: MapRun | None = None
    """The Map Run of that state, of a Distributed Map."""


@dataclass(slots=True)
class Strand:
    """One path of control: an execution, a branch of a Parallel, or an iteration of a Map.

    `previous` is the event that the next one points to.
    """

    execution: Execution
    history: History
    previous: int = 0
    variables: Variables = field(default_factory=Variables)
    item: Mapping[str, Json] | None = None
    """`$$.Map.Item` inside a Map."""
    again: Standing | None = None
    """Where this path goes on from, when it is redriven; taken by the first state that it visits."""
    standing: Standing | None = None
    """Where it stands now."""
    output: Document | None = None
    """What it has come to."""

    def inner(self, previous: int, item: Mapping[str, Json] | None = None) -> Strand:
        """A path within this one. It reads the variables around it and has its own."""
        variables = Variables(self.variables)
        return Strand(self.execution, self.history, previous, variables, self.item if item is None else item)

    def inner_again(self, previous: int, earlier: Strand | None, item: Mapping[str, Json] | None) -> Strand:
        """A path within this one that goes on where an earlier one stood, if it had begun."""
        strand = self.inner(previous, item)
        if earlier is not None and earlier.standing is not None:
            strand.again = earlier.standing
            strand.variables = earlier.standing.variables.copy(self.variables)
        return strand


@dataclass(slots=True)
class Step:
    """How a state was left."""

    output: Document
    next: str | None
    assigned: Mapping[str, Json] | None = None


class Visit:
    """A state being visited."""

    __slots__ = (
        "_again",
        "document",
        "entered",
        "entered_at",
        "retries",
        "state",
        "strand",
        "token",
        "unseen",
    )

    def __init__(self, strand: Strand, state: State, document: Document) -> None:
        self.strand = strand
        self.state = state
        self.document = document
        self.retries = 0
        self.token: str | None = None
        self.unseen = strand.execution.inspection is None
        """Whether nobody watches the steps of the data: only a test of the state alone does."""
        self._again, strand.again = strand.again, None
        self.entered_at = strand.execution.clock.now()
        self.entered = self._enter()
        strand.standing = Standing(state.name, document, strand.variables.copy(), self.entered)

    def _enter(self) -> int:
        """Write the event of entering. A redriven state has been entered already and not been left, but for
        Fail, which is entered again ([dg:redrive-executions], [dg:redrive-map-run]).
        """
        if self._again is not None and self._again.entered and self.state.type != "Fail":
            return self._again.entered
        details = {"name": self.state.name, **data("input", self.document)}
        return self.note(f"{self.state.type}StateEntered", "stateEnteredEventDetails", details)

    def note(
        self,
        kind: str,
        field: str | None = None,
        details: Mapping[str, Json] | None = None,
        *,
        moves: bool = True,
    ) -> int:
        """Write an event; the next one of this strand points to it, unless it does not `move`."""
        number = self.strand.history.add(kind, self.strand.previous, field, details)
        if moves:
            self.strand.previous = number
        return number

    @property
    def standing(self) -> Standing:
        """Where the path stands: in this state, with what a redrive must know of it."""
        assert self.strand.standing is not None
        return self.strand.standing

    def take_again(self) -> Standing | None:
        """What this state goes on with when it is redriven: given once, to its first attempt."""
        again, self._again = self._again, None
        return again

    def leave(self, step: Step) -> None:
        """Write the event of leaving, and set variables."""
        details: dict[str, Json] = {"name": self.state.name, **data("output", step.output)}
        if step.assigned:
            self.document_of(step.assigned)  # 256 KiB at once ([dg:workflow-variables])
            self.strand.variables.assign(step.assigned)
            details["assignedVariables"] = {name: Document(value) for name, value in step.assigned.items()}
            details["assignedVariablesDetails"] = WHOLE_DATA
        self.note(f"{self.state.type}StateExited", "stateExitedEventDetails", details)

    def abort(self) -> None:
        """Write that the state was cut off, for the types that have such an event."""
        if self.state.type in ("Task", "Wait", "Parallel", "Map"):
            # The next event does not point here (measured on AWS: floci-io/floci#3167).
            self.note(f"{self.state.type}StateAborted", moves=False)

    def failed(self, error: EvaluationError, *, begun: bool = False) -> StateError:
        """The failure that an evaluation's problem makes, in AWS's words (recorded: test_invalid_jsonpath).

        The event named is that of entering the state. `begun` says that an event of this failure follows.
        """
        where = f"'{self.state.name}' (entered at the event id #{self.entered})"
        return StateError(
            error.error,
            f"An error occurred while executing the state {where}. {error.message}",
            unrunnable=error.error == RUNTIME and not begun,
        )

    def context(self) -> Json:
        """The context object ([dg:concepts-context-object]; recorded: test_query_context_object_values)."""
        execution = self.strand.execution
        context: dict[str, Json] = {
            "Execution": execution.context,
            "StateMachine": execution.machine_context,
            "State": self._state_context(),
        }
        if self.strand.item is not None:
            context["Map"] = {"Item": self.strand.item}
        if self.token is not None:
            context["Task"] = {"Token": self.token}
        return context

    def _state_context(self) -> dict[str, Json]:
        state: dict[str, Json] = {"Name": self.state.name, "EnteredTime": iso_millis(self.entered_at)}
        if self.state.type == "Task":
            state["RetryCount"] = self.retries
        return state

    def scope(self, value: Json) -> Scope:
        """What expressions see, over some data."""
        return Scope(value, self.context, self.strand.variables, self.strand.execution.chance)

    def effective_input(self) -> Json:
        """The input after InputPath."""
        selected = self.select(self.state.input_path, self.document.value)
        return selected if self.unseen else self._seen("afterInputPath", selected)

    def effective_parameters(self, template: Template | None, given: Json) -> Json:
        """The effective input after Parameters."""
        rendered = self.render(template, given)
        return rendered if self.unseen else self._seen("afterParameters", rendered)

    def effective_result(self, selector: Template | None, result: Json) -> Json:
        """The result after ResultSelector."""
        if self.unseen:
            return self.render(selector, result)
        return self._seen("afterResultSelector", self.render(selector, self._seen("result", result)))

    def _seen(self, name: str, value: Json) -> Json:
        """The value, which a test of the state alone is shown."""
        inspection = self.strand.execution.inspection
        if inspection is not None:
            inspection.see(name, value)
        return value

    def select(self, path: Path | None, value: Json) -> Json:
        """InputPath or OutputPath applied."""
        if path is WHOLE:
            return value
        return EMPTY if path is None else path.select(self.scope(value))

    def render(self, template: Template | None, value: Json) -> Json:
        """A template over some data; without one, the data."""
        return value if template is None else template.render(self.scope(value))

    def finish(self, result: Json) -> Step:
        """From a state's result to its output: Assign, ResultPath, OutputPath, and the size limit."""
        state = self.state
        assigned = self.render(state.assign, result) if state.assign is not None else None
        output = self.combine(state.result_path if isinstance(state, Working) else (), result)
        if not self.unseen and isinstance(state, Working):
            self._seen("afterResultPath", output)
        return Step(self.document_of(self.select(state.output_path, output)), state.next, assigned)

    def combine(self, result_path: tuple[str | int, ...] | None, result: Json) -> Json:
        """ResultPath: the result placed in the state's raw input; None discards it."""
        if result_path is None:
            return self.document.value
        return place(result_path, self.document.value, result)

    def document_of(self, value: Json) -> Document:
        """A value to hand on. Raises StateError (States.DataLimitExceeded), and EvaluationError for what a
        state wrapped so often that nobody could read it.
        """
        if value is self.document.value:
            return self.document
        document = Document(value)
        if too_large(document.text):
            raise data_limit(self.state.name)
        if too_deep(value, document.text):
            raise EvaluationError(f"The data is nested more than {MAX_DEPTH} deep")
        return document


def data_limit(name: str) -> StateError:
    """Something is larger than 256 KiB, in AWS's words (recorded: test_start_large_input)."""
    return StateError(
        DATA_LIMIT,
        f"The state/task '{name}' returned a result with a size exceeding the maximum number of bytes "
        "service limit.",
    )
