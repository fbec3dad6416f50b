"""What a Map works through, and the numbers that bound it."""

from __future__ import annotations

from trueup.local.stepfunctions.errors import EvaluationError
from trueup.local.stepfunctions.model import Map
from trueup.local.stepfunctions.paths import Path
from trueup.local.stepfunctions.running.visit import Visit
from trueup.local.stepfunctions.values import Json, is_integer, is_number, to_text


def select_items(visit: Visit, state: Map, given: Json) -> list[Json]:
    """The array that ItemsPath points to. Raises EvaluationError."""
    items = state.items_path.select(visit.scope(given))
    if not isinstance(items, list):
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
    value = setting.require(visit.scope(given), field)
    if not is_integer(value):
        raise EvaluationError(
            f'The {field} field refers to value "{to_text(value)}" '
            f"which is not a valid integer: {setting.text}"
        )
    if value < 0:
        raise EvaluationError(f"{field.removesuffix('Path')} cannot be negative.")
    return int(value)


def percentage(visit: Visit, setting: float | Path | None, given: Json) -> float | None:
    """ToleratedFailurePercentage. Raises EvaluationError (recorded: …tolerated_failure_percentage_path)."""
    if not isinstance(setting, Path):
        return setting
    value = setting.require(visit.scope(given), "ToleratedFailurePercentagePath")
    if not is_number(value):
        raise EvaluationError(
            f'The ToleratedFailurePercentagePath field refers to value "{to_text(value)}" '
            f"which is not a valid float: {setting.text}"
        )
    if not 0 <= value <= 100:
        raise EvaluationError("ToleratedFailurePercentage must be between 0 and 100.")
    return float(value)
