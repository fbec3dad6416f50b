"""What a reconciliation found, for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from trueup.cli.calling import Client, run_path
from trueup.cli.exits import INCOMPLETE, of_verdict
from trueup.cli.output import print_json, print_table, say, shown_person
from trueup.errors import UsageError

_SHOWN = 20
_CLASSES = ("matched", "missing", "extra", "mismatched", "unreadable", "duplicates")


def show_comparison(there: Client, run: str, html: Path | None, *, json: bool) -> None:
    """Show the report of a reconciliation, and exit with its verdict."""
    found = fetched(there, run, "comparison", html, "when all is compared")
    told(found, _show, html, json=json)
    raise typer.Exit(of_verdict(found["verdict"]))


def fetched(there: Client, run: str, report: str, html: Path | None, when: str) -> Any:
    """A report of a run, its page written where that was asked for; exits where it is not made yet.

    Raises UsageError where the page cannot be written.
    """
    found = there.get(run_path(run, report))
    if "location" in found:
        say(f"Run {run} is {found['status']}: its report is made {when}.", aside=True)
        raise typer.Exit(INCOMPLETE)
    if html is not None:
        _write_page(html, there.text(run_path(run, report), "text/html"))
    return found


def told(found: Any, show: Callable[[Any], None], html: Path | None, *, json: bool) -> None:
    """Print a report, as JSON or as `show` does and with where its page is."""
    if json:
        print_json(found)
        return
    show(found)
    if html is not None:
        print(f"The page is in {html}.")


def _write_page(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--html: {file} cannot be written: {error.strerror}.", remedy="Name another file."
        ) from error


def _show(found: dict[str, Any]) -> None:
    print(f"{found['runId']}  {found['verdict']}")
    for reason in found["reasons"]:
        print(f"  {reason}")
    print(f"{found['job']}, {found['invariant']}, asked for by {shown_person(found['requester'])}")
    print_table(list(_CLASSES), [tuple(f"{found['counts'][name]:,}" for name in _CLASSES)], right=_CLASSES)
    for line in found["states"]:
        print(f"{line['state']} {line['kind']} {line['findings']:,}")
    for line in found["fields"]:
        print(f"{line['name']}: {line['reason']}, {line['findings']:,}")
    for side, one in found["coverage"].items():
        print(f"{side} {one['source']}: {one['rows']:,} rows, {one['proved']:,} of them counted apart")
    for one in found["findings"][:_SHOWN]:
        key = "(no key)" if one["key"] is None else ", ".join(one["key"])
        print(f"{one['kind']} {key}" + (f" ({one['state']})" if one.get("state") else ""))
    if len(found["findings"]) > _SHOWN:
        print("and more; --json and --html show the first ones, and where all lie")
