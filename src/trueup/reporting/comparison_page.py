"""The report of a reconciliation as one page of HTML, for the person who signs it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape

from trueup.model.reconcile import Side
from trueup.model.reconcile_report import ObjectList, ReconcileReport
from trueup.model.reconciled import Reconciled
from trueup.reporting import repair_page
from trueup.reporting.ages_page import ages_section, known_section
from trueup.reporting.markup import document, facts, figure, instant, table

_ENDS = {
    "CLEAN": "good",
    "REPAIRED": "good",
    "UNDONE": "good",
    "DRIFT": "bad",
    "ERROR": "bad",
    "REAPPEARED": "bad",
    "UNREPAIRED": "bad",
}
_LISTS_SHOWN = 500
_CLASSES = {
    "matched": "the same on both sides",
    "missing": "in the truth, not in the target",
    "extra": "in the target, not in the truth",
    "mismatched": "on both sides, with other values",
    "unreadable": "with a value that is not of its type",
    "duplicates": "more than once on a side",
    "newer": "of these, changed after the instant that is compared",
}


def comparison_page(found: Reconciled) -> str:
    """The whole page: what was found, what was signed, and what was done."""
    return document(f"{found.run_id}: {found.verdict}", _sections(found))


def _sections(found: Reconciled) -> Iterator[str]:
    report = found.report
    yield from _head(found)
    if report is not None:
        yield from _figures(report)
    yield from repair_page.gates(found)
    yield from repair_page.repair(found)
    if report is not None:
        yield from _found(report)
        yield from ages_section(report)
        yield from known_section(report)
        yield from _coverage(report)
        yield from _findings(report)
        yield from _lists("Where all findings lie", report.lists)
        yield from _facts(report)
    if found.repair is not None:
        yield from _lists("Where all items of the repair lie", found.repair.lists)
    yield from repair_page.ran(found)
    yield from repair_page.sign_off(found)


def _head(found: Reconciled) -> Iterator[str]:
    report = found.report
    kind = _ENDS.get(found.verdict, "other")
    before = f"{report.verdict} was found" if report is not None and found.repair is not None else ""
    yield f"<h1>{escape(found.run_id)}</h1>"
    yield f'<p><span class="end {kind}">{escape(found.verdict)}</span> {before}</p>'
    if report is not None and report.reasons:
        yield "<ul>"
        yield from (f"<li>{escape(reason)}</li>" for reason in report.reasons)
        yield "</ul>"
    what = f"{found.job}, taking back the repair of {found.undoes}" if found.undoes else found.job
    asked = f"Asked for by {found.requester}" + (f": {found.comment}" if found.comment else "")
    yield f'<p class="quiet">{escape(f"{what}. {asked}")}.</p>'


def _figures(report: ReconcileReport) -> Iterator[str]:
    counts = report.counts
    differ = counts["missing"] + counts["extra"] + counts["mismatched"]
    confirmed = sum(line.findings for line in report.states if line.state == "CONFIRMED")
    beside = f"of {report.partitions:,}"
    yield '<dl class="figures">'
    yield figure("Keys that agree", f"{counts['matched']:,}", "")
    yield figure("Differed at first", f"{differ:,}", "keys")
    yield figure("Confirmed", f"{confirmed:,}", "at a second look")
    yield figure("Partitions compared", f"{report.compared:,}", beside)
    yield "</dl>"


def _found(report: ReconcileReport) -> Iterator[str]:
    yield "<h2>Keys</h2>"
    rows = [[name.capitalize(), meaning, report.counts[name]] for name, meaning in _CLASSES.items()]
    yield table("Keys by what was found", ["Class", "Meaning", "Keys"], rows)
    if report.states:
        states = [[line.state, line.kind, line.findings] for line in report.states]
        yield table("What a second look said", ["State", "Class", "Keys"], states)
    if report.fields:
        fields = [[line.name, line.reason, line.findings] for line in report.fields]
        yield table(f"Why, in {report.findings_read:,} findings", ["Column", "Reason", "Keys"], fields)


def _coverage(report: ReconcileReport) -> Iterator[str]:
    yield "<h2>What was read</h2>"
    rows = [
        [side.value.capitalize(), report.coverage[side].source, *_read(report, side)]
        for side in Side
        if side in report.coverage
    ]
    columns = ["Side", "Source", "Rows", "Proved by a count", "Partitions resumed"]
    yield table("Rows of each side, and how many the source counted too", columns, rows)


def _read(report: ReconcileReport, side: Side) -> list[int]:
    one = report.coverage[side]
    return [one.rows, one.proved, one.resumed]


def _findings(report: ReconcileReport) -> Iterator[str]:
    if not report.findings:
        return
    yield "<h2>Findings</h2>"
    rows = [
        [
            "(no key)" if one["key"] is None else ", ".join(one["key"]),
            one["kind"],
            one.get("state", ""),
            _why(one),
        ]
        for one in report.findings
    ]
    yield table("The first of them", ["Key", "Class", "State", "Why"], rows)


def _why(finding: dict[str, object]) -> str:
    fields = finding.get("fields")
    told = [json.dumps(one, ensure_ascii=False) for one in fields] if isinstance(fields, list) else []
    return "; ".join([*filter(None, [str(finding.get("detail", ""))]), *told])


def _lists(title: str, lists: Sequence[ObjectList]) -> Iterator[str]:
    if not lists:
        return
    yield f"<h2>{title}</h2>"
    rows = [[one.location, one.objects, one.lines, one.sha256] for one in lists[:_LISTS_SHOWN]]
    caption = "Lists that name each object of JSON Lines by its hash"
    yield table(caption, ["List", "Objects", "Lines", "SHA-256"], rows)
    more = len(lists) - _LISTS_SHOWN
    if more > 0:
        yield f"<p>{more:,} more are in the JSON report.</p>"


def _facts(report: ReconcileReport) -> Iterator[str]:
    yield "<h2>What was compared</h2>"
    yield from facts(
        {
            "Invariant": report.invariant,
            "Key": ", ".join(report.key),
            "Columns": ", ".join(report.columns),
            "Compared as of": instant(report.as_of) if report.as_of else "nothing was compared",
            "Last look at": instant(report.finished_at) if report.finished_at else "none",
            "Lag": f"{report.lag:g} s",
        }
    )
