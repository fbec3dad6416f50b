"""What commands print: one JSON document with `--json`, else text for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def say(line: str, *, aside: bool = False) -> None:
    """Print a line at once and whole, from any thread; `aside` on standard error."""
    print(f"{line}\n", end="", file=sys.stderr if aside else sys.stdout, flush=True)


def print_json(document: Any) -> None:
    """Print a JSON document on one line, so that a script can take the last line of any command."""
    print(json.dumps(document, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print rows under their columns' names; the columns named in `right` are aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
