"""What people have on the joined stack: the signed API, the command line, and the report in a browser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from trueup.cli import main
from trueup.handling.api.routes import ROUTES, Route
from trueup.local.people import keys_of, local_user
from trueup.local.stack import Stack
from trueup.model.reconciled import Reconciled
from trueup.model.report import Report

from .watching import tasks_of, wait_until

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples" / "reports"


@pytest.fixture
def as_ann(up: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of somebody with a user of their own."""
    iam = up.client("iam")
    iam.create_user(UserName="ann")
    key = iam.create_access_key(UserName="ann")["AccessKey"]
    _local_tools(up, monkeypatch)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    yield
    iam.delete_access_key(UserName="ann", AccessKeyId=key["AccessKeyId"])
    iam.delete_user(UserName="ann")


def last_line(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """The document that a command prints."""
    assert code == main([*arguments, "--json"]), capsys.readouterr()
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_a_run_from_the_command_line_to_its_report(
    up: Stack, as_ann: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    detail = last_line(capsys, "start", "steps", "--keys", "a,b", "--wait", "--every", "0.5")
    run = detail["run"]
    assert ("SUCCEEDED", "arn:aws:iam::000000000000:user/ann") == (run["status"], run["requester"])
    assert (2, 1.0) == (detail["partitions"]["done"], detail["work"]["share"])
    run_id = run["runId"]
    page = tmp_path / "report.html"
    report = last_line(capsys, "report", run_id, "--html", str(page))
    assert (2, 10, 0) == (report["partitions"], report["records"]["read"], report["unclean"])
    assert report["coldStarts"]["launches"] == len(report["timeLine"]) == report["launches"]
    assert run_id in page.read_text(encoding="utf-8")
    partitions = last_line(capsys, "partitions", run_id, "--state", "ACCEPTED")["partitions"]
    assert ["item=a", "item=b"] == sorted(one["partitionId"] for one in partitions)
    trail = last_line(capsys, "audit", run_id)["entries"]
    assert "arn:aws:iam::000000000000:user/ann" == trail[0]["who"]
    assert run_id in {one["runId"] for one in last_line(capsys, "status")["runs"]}
    assert "steps" in {one["name"] for one in last_line(capsys, "jobs")["jobs"]}


def _local_tools(up: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `trueup up` prints, in the environment."""
    for name, value in {**up.environment(), "TRUEUP_API": up.api}.items():
        monkeypatch.setenv(name, value)


def test_who_calls_is_the_local_user_or_whom_they_name(
    up: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _local_tools(up, monkeypatch)
    runs = [last_line(capsys, "start", "steps", "--keys", "a", "--wait")]
    runs += [last_line(capsys, "start", "steps", "--keys", "a", "--wait", "--as", "bob") for _ in range(2)]
    monkeypatch.setenv("TRUEUP_AS", "carol")
    runs.append(last_line(capsys, "start", "steps", "--keys", "a", "--wait"))
    people = [f"arn:aws:iam::000000000000:user/{name}" for name in (local_user(), "bob", "bob", "carol")]
    trails = [last_line(capsys, "audit", one["run"]["runId"])["entries"] for one in runs]
    assert people == [one["run"]["requester"] for one in runs]
    assert people == [trail[0]["who"] for trail in trails]
    assert 0 == main(["audit", runs[1]["run"]["runId"]])
    assert "user/bob" in capsys.readouterr().out


def test_what_tasks_wrote_can_be_read_when_they_are_dead(
    up: Stack, as_ann: None, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = last_line(capsys, "start", "steps", "--keys", "a,b", "--wait")["run"]["runId"]
    written = {task["taskArn"]: _written(up, task["taskArn"]) for task in tasks_of(up, run_id)}
    assert all(written.values())
    wait_until(lambda: written == {task: _logged(up, task) for task in written})
    for partition in ("item=a", "item=b"):
        lines = last_line(capsys, "logs", run_id, "--partition", partition)["lines"]
        assert [line["message"] for line in lines] in written.values()
        assert 0 == main(["logs", run_id, "--partition", partition])
        assert lines[0]["message"] in capsys.readouterr().out


def _written(up: Stack, task: str) -> list[str]:
    return [line for line in up.ecs.log(task).splitlines() if line]


def _logged(up: Stack, task: str) -> list[str]:
    """What CloudWatch Logs has of a task, by the name that its stream has on AWS."""
    found = up.client("logs").get_log_events(
        logGroupName="/trueup/trueup/tasks",
        logStreamName=f"steps-write/job/{task.rpartition('/')[2]}",
        startFromHead=True,
    )
    return [event["message"] for event in found["events"]]


def test_people_of_a_stack_keep_their_keys(up: Stack) -> None:
    one = keys_of("dora", up.client)
    assert one == keys_of("dora", up.client)
    assert [one[0]] == [
        key["AccessKeyId"] for key in up.client("iam").list_access_keys(UserName="dora")["AccessKeyMetadata"]
    ]


NOBODYS = "AWS4-HMAC-SHA256 Credential=nobody/20260101/us-east-1/execute-api"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
@pytest.mark.parametrize(
    ("signature", "kind"), [(None, "json"), (NOBODYS, "problem+json")], ids=["none", "nobody's"]
)
def test_a_call_that_nobody_signed_is_refused_as_the_document_says(
    up: Stack, route: Route, signature: str | None, kind: str
) -> None:
    """API Gateway refuses where there is no signature; MiniStack checks none, the function wants a caller."""
    headers = {"Authorization": signature} if signature else {}
    url = f"{up.api}{route.path.replace('{runId}', 'x')}"
    body = b"{}" if route.body else None
    call = urllib.request.Request(url, body, headers, method=route.method)  # noqa: S310 - the stack's own address
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(call)  # noqa: S310 - the same
    assert (403, f"application/{kind}") == (refused.value.code, refused.value.headers.get_content_type())
    said = json.loads(refused.value.read())
    assert (["message"] == list(said)) if signature is None else (said["type"].endswith(":unsigned"))


# The report in a browser

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
# What the page looks like once it is laid out, told by a script that only the test adds to it.
LOOK = """
<pre id="told"></pre><script>
const shown = [...document.querySelectorAll("h1, .end, .figures dd, caption, td, th, .facts dd")];
document.getElementById("told").textContent = JSON.stringify({
  ground: getComputedStyle(document.body).backgroundColor,
  wide: document.documentElement.scrollWidth, window: innerWidth,
  hidden: shown.filter(one => !one.getClientRects().length).map(one => one.textContent),
  text: document.querySelector("main").innerText,
  blanks: Object.fromEntries([...document.querySelectorAll(".blanks div")].map(
    one => [one.firstChild.textContent, one.lastChild.getBoundingClientRect().width > 80])),
  squares: document.querySelectorAll("svg [class^='s-']").length,
});</script>"""


def browse(page: Path, *, dark: bool, width: int) -> Any:
    """What a browser makes of a page."""
    assert BROWSER is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom"]
    theme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    home = {**os.environ, "HOME": str(page.parent)}
    command = [BROWSER, *flags, theme, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=90, env=home)
    return json.loads(unescape(done.stdout.partition('<pre id="told">')[2].partition("</pre>")[0]))


def sample_seen(page: Path, name: str, *, dark: bool, width: int) -> Any:
    """What a browser shows of a sample, if it shows all of it, within its window and in its colours."""
    page.write_text((SAMPLES / f"{name}.html").read_text(encoding="utf-8") + LOOK, encoding="utf-8")
    seen = browse(page, dark=dark, width=width)
    assert ("rgb(21, 23, 26)" if dark else "rgb(253, 253, 252)") == seen["ground"]
    assert seen["wide"] <= seen["window"]
    assert [] == seen["hidden"]
    return seen


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here: apt-get install chromium")
@pytest.mark.parametrize("name", ["went-well", "went-badly"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 500], ids=["wide", "narrow"])
def test_a_browser_shows_the_report_as_its_json_has_it(
    tmp_path: Path, name: str, dark: bool, width: int
) -> None:
    report = Report.model_validate_json((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    seen = sample_seen(tmp_path / "page.html", name, dark=dark, width=width)
    assert len(report.heat_map) + len(report.states) == seen["squares"]
    figures = [
        report.records.read,
        report.records.written,
        report.replayed,
        report.throttled,
        report.launches,
    ]
    for said in (report.run_id, report.status.value, *(f"{figure:,}" for figure in figures)):
        assert said in seen["text"]
    for one in [*report.skipped, *report.rejected.reasons]:
        assert f"{one.reason}\t{one.records:,}" in seen["text"]
    for trouble in report.troubles:
        assert trouble.partition_id in seen["text"]


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here: apt-get install chromium")
@pytest.mark.parametrize("name", ["reconciled-clean", "reconciled-drift"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 500], ids=["wide", "narrow"])
def test_a_browser_shows_a_reconciliation_with_room_to_sign(
    tmp_path: Path, name: str, dark: bool, width: int
) -> None:
    found = Reconciled.model_validate_json((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    seen = sample_seen(tmp_path / "page.html", name, dark=dark, width=width)
    assert {"Name": True, "Date": True, "Signature": True} == seen["blanks"]
    for hashed in filter(None, (found.report_sha256, found.repair_sha256, found.evidence_sha256)):
        assert hashed in seen["text"]
    for one in found.items:
        assert f"{one.key[0]}\t{one.action.value}\t{one.outcome.value}" in seen["text"]
    assert (found.repair is None) == ("Nothing was repaired." in seen["text"])


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here: apt-get install chromium")
@pytest.mark.parametrize("name", ["went-badly", "reconciled-drift"])
def test_the_report_can_be_printed(tmp_path: Path, name: str) -> None:
    assert BROWSER is not None
    printed = tmp_path / "report.pdf"
    page = SAMPLES / f"{name}.html"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--print-to-pdf={printed}"]
    home = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run([BROWSER, *flags, page.as_uri()], capture_output=True, check=True, timeout=90, env=home)
    assert printed.read_bytes().startswith(b"%PDF")
