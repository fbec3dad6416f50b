"""One figure of the benchmarks, and what several of them share: the clock, the middle, a fresh process."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table and of bench.json.

    `reference` says what the value is compared with, `reference_value` is that, measured in the same run.
    `bar` is what was asked, None where nothing was; then it is always met.
    """

    name: str
    value: float
    unit: str
    reference: str
    reference_value: float
    bar: str | float | None = None
    met: bool = True

    def document(self) -> dict[str, Any]:
        """The figure as bench.json has it."""
        fields = asdict(self)
        fields["referenceValue"] = fields.pop("reference_value")
        return {name: fields[name] for name in KEYS}


KEYS = ("name", "value", "unit", "reference", "referenceValue", "bar", "met")


def seconds(work: Callable[[], object]) -> float:
    """How long a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def middle(values: Sequence[float]) -> float:
    """The median of an odd number of values, so that it is one that was measured."""
    return sorted(values)[len(values) // 2]


def rounded(value: float) -> float:
    """Four digits that count: the fifth is noise, and no duration becomes zero."""
    return float(f"{value:.4g}")


def in_own_process(module: str, *arguments: object) -> Any:
    """What `python -m bench.<module>` prints, as JSON: for what a process of its own must measure."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{module}", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        raise RuntimeError(f"bench.{module} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def peak_bytes() -> int:
    """The most memory that this process has held at once.

    Linux passes `ru_maxrss` on from the process that forked this one, which may be the fatter of the two,
    so this one's own high-water mark is preferred where there is one.
    """
    if mark := high_water_bytes("self"):
        return mark
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def high_water_bytes(process: int | str) -> int:
    """The most memory that a process has held at once; 0 where the system does not tell."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
