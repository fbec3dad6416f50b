"""The machines' definitions, as text and as data, for the tests that look at them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "statemachines").glob("*.asl.yaml"))

# What template.yaml puts in: ARNs, and the table's name.
SUBSTITUTIONS = {
    "Table": "trueup",
    "Cluster": "arn:aws:ecs:eu-west-1:123456789012:cluster/trueup",
    "Plan": "arn:aws:lambda:eu-west-1:123456789012:function:trueup-plan",
    "Accept": "arn:aws:lambda:eu-west-1:123456789012:function:trueup-accept",
    "Settle": "arn:aws:lambda:eu-west-1:123456789012:function:trueup-settle",
    "Ask": "arn:aws:lambda:eu-west-1:123456789012:function:trueup-ask",
    "Partitions": "arn:aws:states:eu-west-1:123456789012:stateMachine:trueup-partitions",
}


def substituted(path: Path) -> dict[str, Any]:
    """A definition with its substitutions filled in, as CloudFormation does it: in the text."""
    text = re.sub(r"\$\{(\w+)\}", lambda found: SUBSTITUTIONS[found[1]], path.read_text())
    machine: dict[str, Any] = yaml.safe_load(text)
    return machine


def states(workflow: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every state with its name, those inside Maps among them."""
    for name, state in workflow["States"].items():
        yield name, state
        if "ItemProcessor" in state:
            yield from states(state["ItemProcessor"])


def state(file: str, name: str) -> dict[str, Any]:
    """One state of `statemachines/<file>.asl.yaml`."""
    return dict(states(substituted(ROOT / "statemachines" / f"{file}.asl.yaml")))[name]
