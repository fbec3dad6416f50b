"""What a reconciliation found and repaired, for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from trueup.cli.calling import Client, run_path
from trueup.cli.exits import INCOMPLETE, of_verdict
from trueup.cli.output import print_json, print_table, say, shown_person, shown_time, tell
from trueup.errors import UsageError

REPAIR_VERDICTS = frozenset({"REPAIRED", "REAPPEARED", "UNREPAIRED", "PARTIAL"})
_SHOWN = 20
_CLASSES = ("matched", "missing", "extra", "mismatched", "unreadable", "duplicates")


def show_reconciled(there: Client, detail: Any, html: Path | None, *, json: bool) -> None:
    """Show the report of a reconciliation with its repair, if there is one, and exit with the last verdict.

    As JSON it is the report with the repair in it, as `repair`; of a run that takes repairs back, the repair.
    """
    run = detail["run"]["runId"]
    if detail["run"]["undoes"]:
        found = fetched(there, run, "repair", html, "when all is taken back")
        told(found, _show_repair, html, json=json)
        raise typer.Exit(of_verdict(found["verdict"]))
    found = fetched(there, run, "comparison", html, "when all is compared")
    is_repaired = detail["verdict"] in REPAIR_VERDICTS
    repair = there.get(run_path(run, "repair")) if is_repaired else None
    told(found if repair is None else {**found, "repair": repair}, show, html, json=json)
    raise typer.Exit(of_verdict((repair or found)["verdict"]))


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


def told(found: Any, as_text: Callable[[Any], None], html: Path | None, *, json: bool) -> None:
    """Print a report, as JSON or as `as_text` does and with where its page is."""
    if json:
        print_json(found)
        return
    as_text(found)
    if html is not None:
        tell(f"The page is in {html}.")


def _write_page(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--html: {file} cannot be written: {error.strerror}.", remedy="Name another file."
        ) from error


def show(found: dict[str, Any]) -> None:
    """Print what a reconciliation found."""
    tell(f"{found['runId']}  {found['verdict']}")
    for reason in found["reasons"]:
        tell(f"  {reason}")
    tell(f"{found['job']}, {found['invariant']}, asked for by {shown_person(found['requester'])}")
    print_table(list(_CLASSES), [tuple(f"{found['counts'][name]:,}" for name in _CLASSES)], right=_CLASSES)
    for line in found["states"]:
        tell(f"{line['state']} {line['kind']} {line['findings']:,}")
    _show_ages(found["ages"])
    for line in found["known"]:
        until = f"{shown_person(line['who'])}, until {shown_time(line['until'])} UTC: {line['why']}"
        tell(f"{line['findings']:,} of {line['signed']:,} known by {until}")
    for line in found["fields"]:
        tell(f"{line['name']}: {line['reason']}, {line['findings']:,}")
    for side, one in found["coverage"].items():
        tell(f"{side} {one['source']}: {one['rows']:,} rows, {one['proved']:,} of them counted apart")
    for one in found["findings"][:_SHOWN]:
        key = "(no key)" if one["key"] is None else ", ".join(one["key"])
        tell(f"{one['kind']} {key}" + (f" ({one['state']})" if one.get("state") else ""))
    if len(found["findings"]) > _SHOWN:
        tell("and more; --json and --html show the first ones, and where all lie")
    if "repair" in found:
        _show_repair(found["repair"])


def _show_repair(found: dict[str, Any]) -> None:
    tell(f"{found['runId']}  {found['verdict']}")
    for reason in found["reasons"]:
        tell(f"  {reason}")
    if found["undoes"]:
        tell(f"takes back what {found['undoes']} repaired")
    approved = f"{shown_person(found['approvedBy'])} at {shown_time(found['approvedAt'])}"
    tell(f"gate {found['gate']} approved by {approved}, about {found['subjectSha256']}")
    for line in [*found["outcomes"], *found["verified"]]:
        tell(f"{line['outcome']} {line['action']} {line['items']:,}")


def _show_ages(ages: dict[str, Any]) -> None:
    if not ages["lines"]:
        return
    told = ", ".join(f"{line['findings']:,} {line['age']}" for line in ages["lines"])
    tell(f"of what is confirmed: {told}; the oldest since {shown_time(ages['oldest'])}")
    for why in ages["unread"]:
        tell(f"called new, since what was found there before cannot be read: {why}")
