"""Of the page of a reconciliation: since when its findings have been there, and which are known."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from trueup.model.reconcile_report import ReconcileReport
from trueup.reporting.markup import instant, table


def known_section(report: ReconcileReport) -> Iterator[str]:
    """The section about what was signed as known; nothing where nothing was."""
    if not report.known:
        return
    yield "<h2>Known differences</h2>"
    yield "<p>They were signed, are counted apart, are no drift while they last, and are never repaired.</p>"
    rows = [
        [line.who, line.why, instant(line.until), line.signed, line.findings, line.run_id]
        for line in report.known
    ]
    columns = ["By", "Why", "Until", "Signed", "Still so", "About the report of"]
    yield table("What was signed as known when this run was planned", columns, rows)


def ages_section(report: ReconcileReport) -> Iterator[str]:
    """The section about ages; nothing where nothing is confirmed."""
    ages = report.ages
    if not ages.lines:
        return
    yield "<h2>Since when</h2>"
    rows = [[line.age, line.findings] for line in ages.lines]
    yield table("How old what is confirmed is", ["Age", "Keys"], rows)
    if ages.oldest is not None:
        yield f"<p>The oldest has been there since {instant(ages.oldest)}.</p>"
    for run in ages.earlier:
        told = f"Ages come from {run.run_id}, whose report has SHA-256 {run.sha256}."
        yield f'<p class="quiet">{escape(told)}</p>'
    for why in ages.unread:
        yield f"<p>Called new, since what was found there before cannot be read: {escape(why)}</p>"
