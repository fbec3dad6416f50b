"""The report of a run: true to the ledger, made once, and a page that anybody can read."""

from __future__ import annotations

import json
import re
import runpy
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from trueup import Outcome, Reject, Skip
from trueup.errors import StoreUnavailable
from trueup.model.counters import Counters
from trueup.model.ledger import PartitionItem
from trueup.model.report import Report
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.platform import Ended
from trueup.reporting import heat, page, report_key
from trueup.reporting.heat import heat_map
from trueup.schemas import published_report
from trueup.testing import LocalRun

from .handler_world import World
from .worker_cases import Numbers, job_file, job_of

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples" / "reports"
NAMES = ("went-well", "went-badly")
RECONCILED = ("reconciled-clean", "reconciled-drift")
CSS = (ROOT / "src" / "trueup" / "reporting" / "page.css").read_text(encoding="utf-8")


def transform(self: Numbers, number: int) -> Any:
    """Threes are skipped, fives rejected."""
    return {3: Skip("a three"), 5: Reject("a five")}.get(number, number)


def played(**more: Any) -> tuple[World, Report]:
    """A run in a world, to its end, and its report."""
    here = World(job_of(transform=transform), job_file(errors={"rejects": 1}))
    run = here.ask(**more)
    here.play(here.execution(run))
    report = here.reports.of(run.run_id)
    assert report is not None
    return here, report


def sample(name: str) -> Report:
    """A report that is checked in."""
    return Report.model_validate_json((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))


# What it says


def broken(self: Numbers, rows: list[int], ctx: Any) -> Outcome:
    """Refuses all rows: one for a reason with a broken byte, one for an error that has one."""
    reasons = ["caf\udce9", ValueError("caf\udce9")]
    return Outcome(refused=[(row, reasons[row % 2]) for row in rows])


@pytest.mark.parametrize(
    "hooks",
    [
        {"transform": lambda self, number: Reject("caf\udce9")},
        {"transform": lambda self, number: Skip("caf\udce9")},
        {"write": broken},
    ],
    ids=["rejected", "skipped", "refused"],
)
def test_a_reason_with_a_broken_byte_keeps_no_report_away(hooks: Any) -> None:
    here = World(job_of(**hooks), job_file(errors={"rejects": 100}))
    run = here.ask()
    here.play(here.execution(run))
    assert RunStatus.SUCCEEDED is here.run(run.run_id).status
    report = here.reports.of(run.run_id)
    assert report is not None
    told = [*report.skipped, *report.rejected.reasons]
    assert {r"caf\udce9"} == {one.reason for one in told}
    assert r"caf\udce9" in page(report)


def test_a_report_says_what_the_ledger_says() -> None:
    here, report = played(comment="the threes")
    counts = here.ledger.verdicts.counts(report.run_id, Phase.APPLY)
    assert counts.tally().records == report.records
    assert Counters(read=36, used=30, skipped=3, rejected=3, produced=30, written=30) == report.records
    assert [("a three", 3)] == [(one.reason, one.records) for one in report.skipped]
    assert [("a five", 3)] == [(one.reason, one.records) for one in report.rejected.reasons]
    assert ("ann", "the threes", RunStatus.SUCCEEDED) == (report.requester, report.comment, report.status)
    plan = here.artifacts.plan_of(here.run(report.run_id))
    assert (plan.sha256(), plan.write_code) == (report.plan_sha256, report.code)
    assert here.artifacts.estimate(report.run_id).dollars == report.spending.estimated  # type: ignore[union-attr]


def test_both_equations_hold_in_every_line() -> None:
    for name in NAMES:
        for records in [sample(name).records, *(line.records for line in sample(name).states)]:
            assert records.read == records.used + records.skipped + records.rejected
            assert records.produced == records.written + records.unchanged + records.refused


def test_a_killed_launch_is_on_the_time_line_with_its_end() -> None:
    here = World(job_of(), job_file())
    run = here.ask()
    execution = here.execution(run)
    while not execution.children or execution.children[0].task is None:
        here.step(execution)
        for child in execution.children:
            here.step_child(child)
    task = execution.children[0].task
    here.clock.pass_(20)
    for _ in range(4):
        task.step()
    task.end(Ended(exit_code=137, stop_code="SpotInterruption"))
    here.play(execution)
    report = here.reports.of(run.run_id)
    assert report is not None
    first, second = report.time_line
    assert ("exit code 137, stop code SpotInterruption", "again", False) == (
        first.how[:41],
        first.answer,
        first.clean,
    )
    assert (1, True, "done") == (report.unclean, second.clean, second.answer)
    assert report.cold_starts is not None
    assert 20 == report.cold_starts.longest_seconds


def test_a_run_that_could_not_be_planned_has_a_report() -> None:
    here = World(job_of(), job_file())
    run = here.ask()
    here.ledger.runs.stop(run.run_id, RunStatus.CANCELLED, who="ann", why="not today")
    here.play(here.execution(run))
    report = here.reports.of(run.run_id)
    assert report is not None
    assert (RunStatus.CANCELLED, "not today", 0, None) == (
        report.status,
        report.reason,
        report.partitions,
        report.code,
    )
    assert "There are none: the run was not planned." in page(report)


def test_a_run_that_goes_on_has_none() -> None:
    here = World(job_of(), job_file())
    run = here.ask()
    assert (None, None) == (here.reports.of(run.run_id), here.reports.page_of(run.run_id))


# When it is made


def test_settling_makes_it_once_and_it_stands() -> None:
    here, report = played()
    keys = [report_key(report.run_id, kind) for kind in ("json", "html")]
    before = [here.artifacts.store.get(key) for key in keys]
    here.ledger.audit.launch_ended(report.run_id, 99, subject="late", how="late", answer="done")
    assert report == here.reports.of(report.run_id)
    assert before == [here.artifacts.store.get(key) for key in keys]
    assert before[1].decode() == here.reports.page_of(report.run_id)


def test_a_store_that_does_not_answer_leaves_the_run_to_the_sweep() -> None:
    here = World(job_of(), job_file())
    run = here.ask()
    stored = here.artifacts.store.put_once

    def down(key: str, data: bytes) -> None:
        if "report" in key:
            raise StoreUnavailable("S3 did not answer.")
        stored(key, data)

    here.artifacts.store.put_once = down  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        here.play(here.execution(run))
    assert RunStatus.SUCCEEDED is here.run(run.run_id).status
    assert [run.run_id] == list(here.ledger.runs.unsettled())
    here.artifacts.store.put_once = stored  # type: ignore[method-assign]
    assert {run.run_id: "ended"} == here.swept()["did"]
    assert [] == list(here.ledger.runs.unsettled())
    assert here.artifacts.store.get(report_key(run.run_id, "json"))


def test_a_fault_of_the_report_holds_up_no_run(caplog: pytest.LogCaptureFixture) -> None:
    here = World(job_of(), job_file())
    run = here.ask()

    def broken(run_id: str) -> Any:
        raise KeyError("a bug")

    here.ledger.tasks.lives = broken  # type: ignore[method-assign]
    here.play(here.execution(run))
    assert (RunStatus.SUCCEEDED, []) == (
        here.run(run.run_id).status,
        list(here.ledger.runs.unsettled()),
    )
    assert f"run {run.run_id} has no report" in caplog.text


# The heat map


def items(ids: list[str], *states: PartitionStatus) -> list[PartitionItem]:
    """Partitions of these ids in these states, and accepted after that."""
    told = [*states, *[PartitionStatus.ACCEPTED] * len(ids)]
    return [PartitionItem(partition_id=one, status=state) for one, state in zip(ids, told, strict=False)]


def test_squares_come_in_the_order_of_numbers_and_days_are_known() -> None:
    cells = heat_map(items(["id=10-19", "id=0-9", "id=100-109"]))
    assert ["id=0-9", "id=10-19", "id=100-109"] == [cell.first for cell in cells]
    assert ["2013-01-05"] == [cell.day for cell in heat_map(items(["date=2013-01-05"]))]
    assert [None] == [cell.day for cell in heat_map(items(["date=2013-02-31"]))]


def test_one_square_of_many_shows_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heat, "MOST_CELLS", 2)
    cells = heat_map(items([f"k={n}" for n in range(5)], PartitionStatus.ACCEPTED, PartitionStatus.FAILED))
    assert [(3, "FAILED"), (2, "ACCEPTED")] == [(cell.partitions, cell.status) for cell in cells]


@pytest.mark.parametrize("states", [set(PartitionStatus)])
def test_every_state_has_its_place_and_its_colour(states: set[PartitionStatus]) -> None:
    assert states == set(heat.WORST_FIRST)
    for state in states:
        assert f".s-{state.value} " in CSS


def test_a_year_of_days_is_a_calendar_with_its_months() -> None:
    first = date(2013, 1, 1)
    days = [f"date={first + timedelta(days=n)}" for n in range(365)]
    text = page(sample("went-well").model_copy(update={"heat_map": heat_map(items(days))}))
    assert all(f">{month}</text>" in text for month in ("Jan", "Jul", "Dec"))
    assert 365 == text.count("<title>date=")


# The page


class Outline(HTMLParser):
    """What a page is made of, and what is wrong with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "rect", "line", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every such element."""
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_the_figures_of_the_report(name: str) -> None:
    report = sample(name)
    text = " ".join(Outline(page(report)).text)
    figures = [report.records.read, report.records.written, report.replayed, report.launches]
    assert all(f"{figure:,}" in text for figure in figures)
    for expected in (report.run_id, report.status.value, report.requester, report.plan_sha256, report.window):
        assert expected in text
    for trouble in report.troubles:
        assert trouble.partition_id in text
    for reason in [*report.skipped, *report.rejected.reasons]:
        assert reason.reason in text


@pytest.mark.parametrize("name", NAMES)
def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing(name: str) -> None:
    outline = Outline(page(sample(name)))
    assert [] == outline.open
    assert {"script", "link", "img", "iframe"}.isdisjoint(tag for tag, _ in outline.tags)
    assert not [one for _, one in outline.tags if {"src", "href", "onload", "onclick"} & one.keys()]
    assert "url(" not in CSS
    assert "@import" not in CSS


@pytest.mark.parametrize("name", NAMES)
def test_the_page_can_be_read_without_seeing_it(name: str) -> None:
    outline = Outline(page(sample(name)))
    assert [{"lang": "en"}] == outline.of("html")
    assert (1, 1) == (len(outline.of("h1")), len(outline.of("main")))
    for picture in outline.of("svg"):
        said = picture.get("role") == "img" and picture.get("aria-label")
        assert said or picture.get("aria-hidden") == "true"
    assert len(outline.of("table")) == len(outline.of("caption"))
    assert all("scope" in head for head in outline.of("th"))
    assert all(one.get("aria-label") for one in outline.of("div") if one.get("tabindex") == "0")


@pytest.mark.parametrize("name", NAMES)
def test_every_launch_of_the_picture_is_told_in_a_table_with_when_it_began_and_ended(name: str) -> None:
    report = sample(name)
    folded = re.search(
        r"<details><summary>Launches as a table</summary>(.*?)</details>", page(report), re.DOTALL
    )
    assert folded
    rows = re.findall(r"<tr>(<th scope=\"row\".*?)</tr>", folded[1])
    assert len(report.time_line) == len(rows) > 0
    for line, row in zip(report.time_line, rows, strict=True):
        assert line.registered_at is not None
        assert line.ended_at is not None
        began = line.launched_at or line.registered_at
        told = re.sub(r"<[^>]+>", "|", row)
        assert f"|{line.registered_at:%Y-%m-%d %H:%M:%S} UTC||{line.ended_at:%Y-%m-%d %H:%M:%S} UTC|" in told
        assert f"|{(line.ended_at - began).total_seconds():,.0f}|" in told
        assert f"|{line.how}|" in told


def test_colour_never_speaks_alone() -> None:
    report = sample("went-badly")
    text = page(report)
    bad = [cell for cell in report.heat_map if cell.status is not PartitionStatus.ACCEPTED]
    assert bad
    marks = len(re.findall(r'class="mark" ', text))
    assert len(bad) <= marks


def test_whatever_people_wrote_stays_text() -> None:
    evil = "<script>alert('&')</script>"
    report = sample("went-badly")
    trouble = report.troubles[0].model_copy(update={"reason": evil, "error": None, "partition_id": evil})
    changed = {
        "comment": evil,
        "requester": evil,
        "params": {"x": evil},
        "troubles": [trouble],
        "reason": evil,
    }
    outline = Outline(page(report.model_copy(update=changed)))
    assert not outline.of("script")
    assert " ".join(outline.text).count(evil) >= 5


def colours(theme: str) -> dict[str, str]:
    """The named colours of a theme."""
    light, dark, printed = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    chosen = {"light": light, "dark": dark, "print": printed}[theme]
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", chosen))


def test_every_theme_has_every_colour_so_that_print_takes_none_of_the_dark_one() -> None:
    light, dark, printed = map(colours, ("light", "dark", "print"))
    assert light.keys() == dark.keys() == printed.keys()
    paper = {"ground", "text", "quiet", "line", "card", "on-bad"}
    assert {name: light[name] for name in light.keys() - paper} == {
        name: printed[name] for name in printed.keys() - paper
    }
    assert ("#fff", "#000") == (printed["ground"], printed["text"])
    # It comes last, as it has to where the system's theme is dark.
    assert CSS.index("@media (prefers-color-scheme: dark)") < CSS.index("@media print")


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, as WCAG 2 defines it: 1 to 21."""

    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_text_and_marks_stand_out_in_every_theme(theme: str) -> None:
    shown = colours(theme)
    for ground in ("ground", "card"):
        for name in ("text", "quiet", "link"):
            assert contrast(shown[name], shown[ground]) >= 4.5, (name, ground)
    for name in ("accepted", "failed", "stuck", "refused", "rejected", "skipped"):
        assert contrast(shown[name], shown["ground"]) >= 3, name
    for name in ("failed", "stuck", "refused", "rejected"):
        assert contrast(shown["on-bad"], shown[name]) >= 4.5, name


# What is published and checked in


def test_the_samples_are_what_their_command_makes(tmp_path: Path) -> None:
    made = runpy.run_path(str(SAMPLES / "make.py"))
    made["main"](tmp_path)
    for name in (*NAMES, *RECONCILED):
        for kind in ("json", "html"):
            file = f"{name}.{kind}"
            kept, new = ((folder / file).read_text(encoding="utf-8") for folder in (SAMPLES, tmp_path))
            assert kept == new, "run python samples/reports/make.py"


def test_the_two_samples_can_be_told_apart() -> None:
    well, badly = map(sample, NAMES)
    assert (RunStatus.SUCCEEDED, RunStatus.FAILED) == (well.status, badly.status)
    assert 0 == well.unclean == well.throttled == well.rejected.records == well.replayed
    assert min(badly.unclean, badly.throttled, badly.rejected.records, badly.replayed) > 0
    assert {"FAILED", "REJECTED"} <= {line.status.value for line in badly.states}


def test_the_published_schema_is_what_the_model_gives_and_reports_satisfy_it() -> None:
    file = ROOT / "src" / "trueup" / "schemas" / "report.v1.schema.json"
    assert file.read_text(encoding="utf-8") == published_report(), "run python -m trueup.schemas"
    validator = Draft202012Validator(json.loads(published_report()))
    for report in (*map(sample, NAMES), played()[1]):
        assert not list(validator.iter_errors(report.document()))


def test_a_run_in_one_process_can_be_reported_too() -> None:
    run = LocalRun(job_of(), job_file(), keys=["a"])
    run.run()
    from trueup.reporting import Reports

    report = Reports(run.ledger, run.artifacts).of(run.run_id)
    assert report is not None
    assert (1, 0) == (report.launches, report.unclean)
