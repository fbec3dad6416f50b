"""What commands print: one JSON document with `--json`, else text for people."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from trueup.texts import in_json, printable_lines

_WIDE = 1_000

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def say(line: str, *, aside: bool = False) -> None:
    """Print a line at once and whole, from any thread; `aside` on standard error."""
    print(f"{line}\n", end="", file=sys.stderr if aside else sys.stdout, flush=True)


def tell(text: str) -> None:
    """Print what came from elsewhere, such as a job's words: it moves no cursor and hides nothing."""
    print(printable_lines(text), flush=True)


def program() -> str:
    """How the command line was called, so that commands which it tells to run can be run as they stand."""
    called = Path(sys.argv[0])
    if called.name != "trueup":
        return f"{shlex.quote(sys.executable)} -m trueup.cli"
    found = shutil.which("trueup")
    is_found = found is not None and called.exists() and Path(found).samefile(called)
    return "trueup" if is_found else shlex.quote(str(called))


def print_json(document: Any) -> None:
    """Print a JSON document on one line, so that a script can take the last line of any command.

    What a terminal may not show is escaped, which is the same JSON.
    """
    print("".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in in_json(document)))


def shown_time(instant: str | None) -> str:
    """An instant to the second, in UTC, as `2026-07-06 01:00:00`; empty where there is none."""
    return (instant or "")[:19].replace("T", " ")


def shown_person(who: str) -> str:
    """An identity without what is the same for everybody: `user/ann` of an ARN."""
    return who.rpartition(":")[2] if who.startswith("arn:") else who


def duration(seconds: float) -> str:
    """Seconds as people say them: `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 100:
        return f"{seconds:.0f} s"
    if minutes < 100:
        return f"{minutes} min"
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print rows under their columns' names; the columns named in `right` are aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*map(printable_lines, row))
    # A pipe has no width: a line broken in two is of no use to whoever reads it.
    width = None if sys.stdout.isatty() else _WIDE
    Console(highlight=False, markup=False, width=width).print(table)


def verified(found: Mapping[str, Any]) -> str:
    """What became of the verification of a run, in a line."""
    by = f"verified by {found['job']}"
    if found["verdict"]:
        told = ": ".join([found["verdict"], *found["reasons"][:1]])
        return f"{by}: {told}" + (f" ({found['runId']})" if found["runId"] else "")
    return f"{by}: {found['runId']} is at work" if found["runId"] else f"not {by} yet"
