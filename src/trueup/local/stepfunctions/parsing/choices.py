"""Choice states."""

from __future__ import annotations

from trueup.local.stepfunctions import choice
from trueup.local.stepfunctions.model import Choice, Rule
from trueup.local.stepfunctions.parsing.fields import SCHEMA, Fields
from trueup.local.stepfunctions.paths import Path
from trueup.local.stepfunctions.values import Json

_COMBINED = ("And", "Or", "Not")


def never(_: object) -> bool:
    """What stands for a rule that could not be read."""
    return False


def parse_choice(fields: Fields, common: dict[str, Json]) -> Choice:
    """A Choice state with its rules."""
    raw = fields.list("Choices", required=True)
    rules = [_rule(_at(fields, "Choices", index, rule)) for index, rule in enumerate(raw)]
    return Choice(**common, rules=tuple(rules), default=fields.text("Default"))


def _at(fields: Fields, field: str, index: int, raw: Json) -> Fields:
    return Fields(raw, f"{fields.location}/{field}[{index}]", fields.problems, f"{fields.owner}, a rule")


def _rule(fields: Fields) -> Rule:
    next_state = fields.text("Next", required=True) or ""
    assign = fields.template("Assign")
    return Rule(_condition(fields), next_state, assign)


def _condition(fields: Fields) -> choice.Predicate:
    combined = [name for name in _COMBINED if fields.has(name)]
    predicate = _combination(fields, combined[0]) if combined else _comparison(fields)
    fields.finish()
    return predicate


def _combination(fields: Fields, name: str) -> choice.Predicate:
    if name == "Not":
        return choice.negated(_condition(fields.inner("Not")))
    parts = [
        _condition(_at(fields, name, index, raw))
        for index, raw in enumerate(fields.list(name, required=True))
    ]
    return choice.all_of(parts) if name == "And" else choice.any_of(parts)


def _comparison(fields: Fields) -> choice.Predicate:
    fields.text("Variable", required=True)
    variable = fields.path("Variable")
    given = [name for name in choice.OPERATORS if fields.has(name)]
    if len(given) != 1:
        fields.problem(SCHEMA, f"A rule has exactly one comparison; this one has {len(given)}")
        return never
    if variable is None:
        return never
    name = given[0]
    if name.endswith("Path"):
        other = fields.path(name)
        return choice.compare_path(variable, name.removesuffix("Path"), other) if other else never
    if name in choice.COMPARISONS:
        return _constant(fields, variable, name)
    return _test(fields, variable, name)


def _constant(fields: Fields, variable: Path, name: str) -> choice.Predicate:
    kind, _ = choice.COMPARISONS[name]
    wanted = fields.any(name)
    if kind.read(wanted) is None:
        fields.problem(SCHEMA, kind.refusal, name)
        return never
    return choice.compare_value(variable, name, wanted)


def _test(fields: Fields, variable: Path, name: str) -> choice.Predicate:
    if name == "StringMatches":
        return choice.matches(variable, fields.text(name) or "")
    wanted = fields.boolean(name)
    return (
        choice.is_present(variable, wanted)
        if name == "IsPresent"
        else choice.has_type(variable, name, wanted)
    )
