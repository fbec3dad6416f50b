"""A report as one page of HTML: no scripts, no fonts, no images from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape

from trueup.model.counters import Counters
from trueup.model.report import LaunchLine, Report, Trouble
from trueup.model.states import PartitionStatus, RunStatus
from trueup.reporting.drawing import heat_map, square, time_line
from trueup.reporting.markup import document, facts, figure, folded, instant, scroll, table

_ENDS = {RunStatus.SUCCEEDED: "good", RunStatus.FAILED: "bad", RunStatus.ABORTED: "bad"}
_P = PartitionStatus
_GOOD = (_P.ACCEPTED, _P.SKIPPED)


def page(report: Report) -> str:
    """The whole page."""
    title = f"{report.run_id}: {report.status.value}"
    return document(title, _sections(report))


def _sections(report: Report) -> Iterator[str]:
    yield from _head(report)
    yield from _figures(report)
    yield from _partitions(report)
    yield from _records(report)
    yield from _left_out(report)
    yield from _launches(report)
    yield from _troubles(report)
    yield from _verification(report)
    yield from _facts(report)


def _head(report: Report) -> Iterator[str]:
    kind = _ENDS.get(report.status, "other")
    yield f"<h1>{escape(report.run_id)}</h1>"
    yield f'<p><span class="end {kind}">{report.status.value}</span> {escape(report.reason or "")}</p>'
    what = f"{report.job}, {report.window}" + (", a dry run: nothing was written" if report.dry_run else "")
    asked = f"Asked for by {report.requester}" + (f": {report.comment}" if report.comment else "")
    yield f'<p class="quiet">{escape(what)}. {escape(asked)}.</p>'


def _figures(report: Report) -> Iterator[str]:
    accepted = sum(line.partitions for line in report.states if line.status is _P.ACCEPTED)
    left_out = report.records.rejected + report.records.refused
    estimated = report.spending.estimated
    yield '<dl class="figures">'
    yield figure("Partitions accepted", f"{accepted:,}", f"of {report.partitions:,}")
    yield figure("Records read", f"{report.records.read:,}", f"{report.records.written:,} rows written")
    yield figure("Rejected or refused", f"{left_out:,}", "records and rows")
    yield figure("Worked again, about", f"{report.replayed:,}", "records, after tasks died")
    yield figure("Launches", f"{report.launches:,}", f"{report.unclean:,} ended otherwise than asked")
    yield figure("Asked to slow down", f"{report.throttled:,}", "times, by source or target")
    yield figure("Open", _duration(report.open_seconds), "without pauses")
    beside = "" if estimated is None else f"{estimated:,.4f} estimated"
    yield figure("US dollars", f"{report.spending.dollars:,.4f}", beside)
    yield "</dl>"


def _partitions(report: Report) -> Iterator[str]:
    yield "<h2>Partitions</h2>"
    if not report.heat_map:
        yield "<p>There are none: the run was not planned.</p>"
        return
    several = max(cell.partitions for cell in report.heat_map)
    if several > 1:
        yield f"<p>Each square is up to {several:,} partitions, and shows the worst state among them.</p>"
    label = "Partitions by state: " + ", ".join(
        f"{line.partitions:,} {line.status.value}" for line in report.states
    )
    yield scroll("Heat map of the partitions", heat_map(report.heat_map, label))
    yield '<ul class="key">'
    for line in report.states:
        yield f"<li>{square(line.status)} {line.status.value} {line.partitions:,}</li>"
    yield "</ul>"


_READ = ("read", "used", "skipped", "rejected")
_PRODUCED = ("produced", "written", "unchanged", "refused")


def _records(report: Report) -> Iterator[str]:
    yield "<h2>Records</h2>"
    yield "<p>Read = used + skipped + rejected, and produced = written + unchanged + refused.</p>"
    columns = ["Partitions", *(name.capitalize() for name in (*_READ, *_PRODUCED)), "Worked again"]
    rows = [
        [line.status.value, line.partitions, *_counts(line.records), line.replayed] for line in report.states
    ]
    total = ["All", sum(line.partitions for line in report.states), *_counts(report.records), report.replayed]
    yield table("Records by the state that their partitions ended in", ["State", *columns], rows, total)


def _counts(records: Counters) -> list[int]:
    return [getattr(records, name) for name in (*_READ, *_PRODUCED)]


def _left_out(report: Report) -> Iterator[str]:
    yield "<h2>Left out, and why</h2>"
    if not report.skipped and not report.rejected.records:
        yield "<p>No record was skipped, rejected or refused.</p>"
    if report.skipped:
        rows = [[one.reason, one.records] for one in report.skipped]
        yield table("Skipped on purpose", ["Reason", "Records"], rows)
    if report.rejected.records:
        read, records = report.rejected.read_records, report.rejected.records
        caption = "Rejected records and refused rows"
        caption += "" if read >= records else f", from the first {read:,} of {records:,}"
        yield table(
            caption, ["Reason", "Records"], [[one.reason, one.records] for one in report.rejected.reasons]
        )


def _launches(report: Report) -> Iterator[str]:
    yield "<h2>Tasks</h2>"
    if not report.time_line:
        yield "<p>No task was launched.</p>"
        return
    cold = report.cold_starts
    if cold is not None:
        yield (
            f"<p>From asking for a task until it began: {cold.median_seconds:g} s in the middle, "
            f"{cold.longest_seconds:g} s at the most (pale). Red with an X are launches that were cut.</p>"
        )
    yield scroll("Time line of the tasks", time_line(report.time_line, _spoken(report)))
    cut = [line for line in report.time_line if not line.clean]
    if cut:
        rows = [[line.launch, line.slice_id, line.how, line.answer or "not judged"] for line in cut]
        yield table("Launches that ended otherwise than asked", ["Launch", "Slice", "How", "Then"], rows)
    # What the picture shows, for whoever does not see it.
    columns = ["Launch", "Slice", "Asked for", "Began", "Ended", "Seconds", "How"]
    yield folded("Launches as a table", table("Launches", columns, map(_launch, report.time_line)))
    if report.launches_left_out:
        yield f"<p>{report.launches_left_out:,} later launches are left out here.</p>"


def _launch(line: LaunchLine) -> list[object]:
    begun, ended = line.launched_at or line.registered_at, line.ended_at
    lasted = "" if begun is None or ended is None else round((ended - begun).total_seconds())
    instants = (line.launched_at, line.registered_at, ended)
    told = ["" if at is None else instant(at) for at in instants]
    return [line.launch, "" if line.slice_id is None else line.slice_id, *told, lasted, line.how]


def _spoken(report: Report) -> str:
    return f"{len(report.time_line):,} launches, {report.unclean:,} of them cut"


def _troubles(report: Report) -> Iterator[str]:
    if not report.troubles:
        return
    yield "<h2>What did not make it</h2>"
    rows = [[one.partition_id, one.status.value, _why(one)] for one in report.troubles]
    yield table("Partitions that were not accepted", ["Partition", "State", "Why"], rows)
    if report.troubles_left_out:
        yield f"<p>{report.troubles_left_out:,} more are left out here.</p>"


def _why(trouble: Trouble) -> str:
    error = trouble.error
    if error is None:
        return trouble.reason or ""
    record = f"\nrecord: {error.record}" if error.record else ""
    return f"{error.kind}: {error.message}{record}"


def _verification(report: Report) -> Iterator[str]:
    found = report.verification
    if found is None:
        return
    yield "<h2>Verification</h2>"
    yield f"<p>By {escape(found.job)}: {escape(str(found))}.</p>"
    if len(found.reasons) > 1:
        yield table("Why", ["Reason"], [[reason] for reason in found.reasons])
    if found.report_sha256:
        yield from facts({"Its run": found.run_id or "", "Its report": f"SHA-256 {found.report_sha256}"})


def _facts(report: Report) -> Iterator[str]:
    code = report.code
    told = {
        "Asked for by": report.requester,
        "Asked for at": instant(report.created_at),
        "Ended at": instant(report.ended_at),
        "Parameters": json.dumps(report.params, ensure_ascii=False) if report.params else "none",
        "Target": f"{report.target}, guard {report.guard.value}",
        "Cannot be prevented": report.guard.cannot_prevent,
        "Phase": f"{report.phase.value}, generation {report.generation}",
        "Plan": f"SHA-256 {report.plan_sha256}" if report.plan_sha256 else "none",
        "Task definition": code.task_definition if code else "none",
        "Image": code.image_digest if code else "none",
        "Dollars": report.spending.basis,
    }
    yield "<h2>What ran</h2>"
    yield from facts(told)


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
