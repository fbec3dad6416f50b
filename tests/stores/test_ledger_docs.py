"""docs/ledger.md says what the code does: the same keys, attributes, calls and clauses."""

from __future__ import annotations

import ast
import inspect
import re
from datetime import UTC, datetime
from pathlib import Path

import trueup.ledger
from trueup.ledger import Ledger, keys
from trueup.ledger.memory import MemoryTable
from trueup.model.base import Value
from trueup.model.gate import Gate
from trueup.model.ledger import AuditEntry, LaunchLife, Lock, PartitionItem, Run, TaskItem
from trueup.model.states import GATE_ARROWS, Phase
from trueup.testing.suites.writes import DRAWS, WRITES

PAGE = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table after a heading, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def clauses_in_code() -> set[str]:
    """Every name given to a clause: the first argument of Clause(...), and `clause=` of an error."""
    found = set()
    for file in Path(inspect.getfile(trueup.ledger)).parent.glob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call):
                first = call.args[:1] if getattr(call.func, "id", "") == "Clause" else []
                spoken = [keyword.value for keyword in call.keywords if keyword.arg == "clause"]
                found |= {part.value for part in [*first, *spoken] if isinstance(part, ast.Constant)}
    return found


def test_the_clauses_on_the_page_are_those_in_the_code() -> None:
    assert clauses_in_code() == {name for row in rows("The conditional writes") for name in named(row[2])}


def test_every_call_that_writes_is_on_the_page() -> None:
    page = {name for row in rows("The conditional writes") for name in named(row[0])}
    assert set(WRITES) | DRAWS | {"gates.check_passed", "known.check"} == page


def test_the_keys_on_the_page_are_those_in_the_code() -> None:
    of = {
        keys.run("<run>"),
        keys.count("<run>", 0),
        keys.task("<run>", Phase.APPLY, 7, 40),
        keys.audit("<run>", datetime(2026, 1, 1, tzinfo=UTC), "<id>"),
        keys.gate("<run>", "<name>"),
        keys.waiting("<run>", "<name>"),
        keys.rate("<run>"),
        keys.row("<run>"),
        keys.partition("<run>", Phase.APPLY, "<partition>"),
        keys.lock("<target>"),
        keys.history("<job>", "<scope>"),
        keys.known("<job>", "<id>"),
        keys.request("<requestId>"),
        keys.schedule("<schedule>", "<scheduled time>"),
        keys.unsettled("<run>"),
        keys.ended("<run>", 40),
        keys.downloaded("<run>", "<digest>", "<person>"),
        keys.listed("<run>", datetime(2026, 1, 1, tzinfo=UTC)),
    }
    assert of == {(_filled(pk), _filled(sk)) for pk, sk, _ in rows("What is in the table")}


def _filled(key: str) -> str:
    """A key of the page with the values above in place of its placeholders."""
    told = {
        "COUNT#<0-7>": "COUNT#0",
        "<phase>": "apply",
        "<slice>": "000007",
        "<launch>": "00000040",
        "<time backwards>": "8232774400000",
        "<time>": "2026-01-01T00:00:00.000000Z",
        "<0-7>": str(keys.shard("<partition>")),
    }
    for name, value in told.items():
        key = key.replace(name, value)
    return key.strip("`")


def test_the_attributes_on_the_page_are_those_of_the_models() -> None:
    models: dict[str, type[Value]] = {
        "RUN": Run,
        "TASK": TaskItem,
        "ENDED": LaunchLife,
        "AUDIT": AuditEntry,
        "PART": PartitionItem,
        "LOCK": Lock,
        "GATE": Gate,
    }
    page = {re.split("[#`]", row[1].strip("`"))[0]: named(row[2]) for row in rows("What is in the table")}
    for name, model in models.items():
        assert [field.alias for field in model.model_fields.values()] == page[name]


def test_the_calls_on_the_page_exist() -> None:
    ledger = Ledger(MemoryTable())
    for row in rows("The conditional writes"):
        for name in named(row[0]):
            part, _, call = name.partition(".")
            assert callable(getattr(getattr(ledger, part), call))


def test_the_arrows_of_gates_on_the_page_are_those_of_the_model() -> None:
    arrows = [[before.value, after.value, why] for (before, after), why in GATE_ARROWS.items()]
    assert arrows == rows("The states of a gate")
