"""`python -m bench [NAME ...]`: a table for people, bench.json for programs.

Exit 0, 1 where a bar is not met, 2 for a name that is none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import (
    callbacks,
    contract,
    fan_out,
    imports,
    ledger,
    loops,
    orchestration,
    packing,
    planning,
    reconcile,
    reconcile_others,
    status,
    throughput,
)
from bench.figures import ROOT, Figure

Benchmark = Callable[[], Iterator[Figure]]

BENCHMARKS: Mapping[str, Benchmark] = {
    "throughput": throughput.measure,
    "planning": planning.measure,
    "import": imports.measure,
    "ledger": ledger.measure,
    "contract": contract.measure,
    "packing": packing.measure,
    "status": status.measure,
    "fan-out": fan_out.measure,
    "callbacks": callbacks.measure,
    "loops": loops.measure,
    "orchestration": orchestration.measure,
    "reconcile": reconcile.measure,
    "reconcile-others": reconcile_others.measure,
    "reconcile-10m": reconcile.measure_large,
}


def main(names: Sequence[str], benchmarks: Mapping[str, Benchmark] = BENCHMARKS, folder: Path = ROOT) -> int:
    """Run the benchmarks of these names (none: all), and give the exit code."""
    if unknown := [name for name in names if name not in benchmarks]:
        print(f"There is no benchmark {unknown[0]!r}; there are {', '.join(benchmarks)}.", file=sys.stderr)
        return 2
    figures: list[Figure] = []
    progress = Console(stderr=True)
    for name in names or benchmarks:
        with progress.status(f"measuring {name}"):
            figures += benchmarks[name]()
    documents = [one.document() for one in figures]
    (folder / "bench.json").write_text(json.dumps(documents, indent=2, ensure_ascii=False) + "\n")
    show(figures)
    return 0 if all(one.met for one in figures) else 1


def show(figures: Iterable[Figure]) -> None:
    """One line for each figure, and below it what each is compared with, which is too long for a column."""
    drawn = Table(box=None, pad_edge=False)
    for heading in ("benchmark", "value", "reference", "unit", "bar", "met"):
        numeric = heading in ("value", "reference")
        drawn.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for one in figures:
        drawn.add_row(*_cells(one))
    console = Console(highlight=False)
    console.print(drawn)
    console.print("\nThe references, measured in the same run:")
    for one in figures:
        console.print(f"  {one.name}: {one.reference}", markup=False, soft_wrap=True)


def _cells(one: Figure) -> Sequence[str]:
    met = "[green]yes[/]" if one.met else "[bold red]no[/]"
    bar, met = ("", "") if one.bar is None else (str(one.bar), met)
    return one.name, f"{one.value:,}", f"{one.reference_value:,}", one.unit, bar, met


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
