"""What a Map works through, and the numbers that bound it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trueup.local.stepfunctions.errors import EvaluationError
from trueup.local.stepfunctions.model import Map
from trueup.local.stepfunctions.paths import Path
from trueup.local.stepfunctions.running.visit import Visit
from trueup.local.stepfunctions.values import Json, is_integer, is_number, to_text

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,18}(?:\.[0-9]{1,18})?")


@dataclass(frozen=True, slots=True)
class Item:
    """One element of an array, or one pair of an object."""

    value: Json
    key: str | None = None

    @property
    def whole(self) -> Json:
        """What an iteration is given without an ItemSelector (pairs are measured: floci-io/floci#1588)."""
        return self.value if self.key is None else {"Key": self.key, "Value": self.value}

    def context(self, index: int) -> dict[str, Json]:
        """`$$.Map.Item`; `Key` is there for pairs alone ([dg:input-output-contextobject])."""
        key = {} if self.key is None else {"Key": self.key}
        return {"Index": index, **key, "Value": self.value}


def items_of(value: Json) -> list[Item] | None:
    """The elements of an array or the pairs of an object; None for anything else."""
    if isinstance(value, dict):
        return [Item(member, key) for key, member in value.items()]
    return [Item(element) for element in value] if isinstance(value, list) else None


def select_items(visit: Visit, state: Map, given: Json) -> list[Item]:
    """The array that ItemsPath points to; a Distributed Map also takes an object, an inline one does not
    ([dg:input-output-itemspath], [dg:state-map-inline]). Raises EvaluationError.
    """
    found = state.items_path.select(visit.scope(given))
    items = items_of(found) if state.distributed or isinstance(found, list) else None
    if items is None:
        raise EvaluationError(f'Reference path "{state.items_path.text}" must point to array.')
    return items


def concurrency(visit: Visit, state: Map, given: Json) -> int:
    """MaxConcurrency, given or at its path; 0 for as many as there may be."""
    return whole(visit, state.max_concurrency, "MaxConcurrencyPath", given) or 0


def whole(visit: Visit, setting: int | Path | None, field: str, given: Json) -> int | None:
    """A whole number from the definition or the data. Raises EvaluationError, in AWS's words
    (recorded: test_map_state_tolerated_failure_count_path)."""
    if not isinstance(setting, Path):
        return setting
    value = integer_at(visit, setting, field, given)
    if value < 0:
        raise EvaluationError(f"{field.removesuffix('Path')} cannot be negative.")
    return value


def integer_at(visit: Visit, path: Path, field: str, given: Json) -> int:
    """A whole number at a path, or a text that is one, as moto reads them. Raises EvaluationError."""
    value = path.require(visit.scope(given), field)
    if is_integer(value):
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    raise _no_number(field, value, "integer", path)


def _no_number(field: str, value: Json, kind: str, path: Path) -> EvaluationError:
    text = value if isinstance(value, str) else to_text(value)
    return EvaluationError(
        f'The {field} field refers to value "{text}" which is not a valid {kind}: {path.text}'
    )


def percentage(visit: Visit, setting: float | Path | None, given: Json) -> float | None:
    """ToleratedFailurePercentage. Raises EvaluationError (recorded: …tolerated_failure_percentage_path)."""
    if not isinstance(setting, Path):
        return setting
    field = "ToleratedFailurePercentagePath"
    value = setting.require(visit.scope(given), field)
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if not is_number(value):
        raise _no_number(field, value, "float", setting)
    if not 0 <= value <= 100:
        raise EvaluationError("ToleratedFailurePercentage must be between 0 and 100.")
    return float(value)
