"""The HTTP API: what it starts and shows, and what it answers to whatever is wrong."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup import Outcome, Reject
from trueup.errors import StoreUnavailable
from trueup.handling.api import reference
from trueup.handling.api.openapi import FILE, document, text
from trueup.handling.api.problems import KINDS
from trueup.handling.api.routes import ROUTES
from trueup.model.states import Phase, RunStatus

from .api_cases import ANN, OPENAPI, Client, api_of, check_answer, event_of
from .handler_world import World
from .worker_cases import Numbers, job_file, job_of

KEYS = ["a", "b", "c"]
START = {"job": "numbers", "requestId": "r-1", "keys": KEYS}


def rejecting(self: Numbers, number: int) -> Any:
    """Partition b would be rejected: it has two fives."""
    return Reject("five") if number == 5 else number


def refusing(self: Numbers, rows: list[Any], ctx: Any) -> Outcome:
    """Refuses texts, with their broken bytes."""
    refused = [(row, "no number") for row in rows if isinstance(row, str)]
    return Outcome(written=len(rows) - len(refused), refused=refused)


BROKEN = {"transform": lambda self, number: "caf\udce9" if number == 5 else number, "write": refusing}
"""Hooks of a job whose rows no UTF-8 can carry as they are."""


@pytest.fixture
def world() -> World:
    """A world without a run."""
    return World(job_of(transform=rejecting), job_file(errors={"rejects": 1}, description="Numbers."))


@pytest.fixture
def client(world: World) -> Client:
    """Who calls its API."""
    return Client(api_of(world))


@pytest.fixture
def run_id(world: World, client: Client) -> str:
    """A run that was started by the API, and is over."""
    status, started = client.call("POST", "/runs", body=START)
    assert status == 202
    world.play(world.steps.executions[started["execution"]])
    return str(started["runId"])


def test_a_start_is_answered_at_once_with_where_to_look(world: World, client: Client) -> None:
    answer = client.api.handle(event_of("POST", "/runs", body=START))
    started = json.loads(answer["body"])
    assert (202, f"/runs/{started['runId']}") == (answer["statusCode"], answer["headers"]["location"])
    assert ("RUNNING", f"{started['runId']}-1") == (started["status"], started["execution"])
    assert [started["execution"]] == world.steps.starts


def test_asked_twice_it_starts_one_run(world: World, client: Client) -> None:
    runs = {client.call("POST", "/runs", body=START)[1]["runId"] for _ in range(2)}
    assert (1, 1) == (len(runs), len(world.steps.executions))


def test_who_asked_is_who_signed_and_nobody_else(world: World, client: Client) -> None:
    _, started = client.call("POST", "/runs", body={**START, "comment": "the fives"})
    (entry,) = client.get(f"/runs/{started['runId']}/audit")["entries"]
    assert (ANN, "the fives") == (entry["who"], entry["why"])
    assert (
        400,
        "wrong-request",
        "requester",
        "there is no such field. Did you mean `requestId`?",
    ) == client.problem("POST", "/runs", body={**START, "requestId": "r-2", "requester": "somebody else"})
    assert 1 == len(world.steps.executions)


def test_a_schedules_run_cannot_be_asked_for_in_a_body(client: Client) -> None:
    body = {"schedule": "nightly", "scheduledTime": "2026-01-01T00:00:00Z", "request": START}
    assert (400, "schedule") == client.problem("POST", "/runs", body=body)[::2][:2]


def test_a_call_without_an_identity_is_refused(world: World, client: Client) -> None:
    for route in ROUTES:
        path = route.path.replace("{runId}", "x").replace("{name}", "apply")
        status, kind, _, told = client.problem(route.method, path, caller="", body=START)
        assert (403, "unsigned") == (status, kind)
        assert "Sign the call with SigV4." in told
    assert not world.steps.executions


def test_a_run_is_shown_and_listed(client: Client, run_id: str) -> None:
    detail = client.get(f"/runs/{run_id}")
    assert ("SUCCEEDED", 3, 36) == (
        detail["run"]["status"],
        detail["byState"]["ACCEPTED"],
        detail["records"]["read"],
    )
    assert [run_id] == [run["runId"] for run in client.get("/runs", job="numbers")["runs"]]
    assert [] == client.get("/runs", status="FAILED")["runs"]


def test_partitions_and_rejects_are_paged(client: Client, run_id: str) -> None:
    first = client.get(f"/runs/{run_id}/partitions", state="ACCEPTED", limit="2")
    second = client.get(f"/runs/{run_id}/partitions", state="ACCEPTED", limit="2", after=first["next"])
    found = [one["partitionId"] for page in (first, second) for one in page["partitions"]]
    assert ["item=a", "item=b", "item=c"] == found
    rejects = client.get(f"/runs/{run_id}/rejects", partition="item=b")["rejects"]
    assert [("item=b", 5, "five")] == [
        (one["partitionId"], one["reject"]["rejected"], one["reject"]["reason"]) for one in rejects
    ]


def test_a_row_with_a_broken_byte_is_listed_as_utf_8() -> None:
    here = World(job_of(**BROKEN), job_file(errors={"rejects": 1}))
    there = Client(api_of(here))
    _, started = there.call("POST", "/runs", body=START)
    here.play(here.steps.executions[started["execution"]])
    answer = there.api.handle(event_of("GET", f"/runs/{started['runId']}/rejects"))
    rejects = json.loads(answer["body"].encode())["rejects"]
    assert (200, {"caf\udce9"}) == (answer["statusCode"], {one["reject"]["refused"] for one in rejects})


def test_a_report_is_there_once_the_run_has_ended_and_a_place_to_look_before(
    world: World, client: Client
) -> None:
    _, started = client.call("POST", "/runs", body=START)
    path = f"/runs/{started['runId']}"
    status, pending = client.call("GET", f"{path}/report")
    assert (202, "RUNNING", path) == (status, pending["status"], pending["location"])
    world.play(world.steps.executions[started["execution"]])
    report = client.get(f"{path}/report")
    assert ("SUCCEEDED", 36) == (report["status"], report["records"]["read"])


def test_the_log_of_a_partition_is_its_last_tasks(world: World, client: Client, run_id: str) -> None:
    path = f"/runs/{run_id}/logs"
    first = client.get(path, partition="item=b", limit="1")
    second = client.get(path, partition="item=b", limit="1", after=first["next"])
    task = world.ledger.partitions.get(run_id, Phase.APPLY, "item=b").task or ""
    stream = f"numbers-write/job/{task.rpartition('/')[2]}"
    told = [line["message"] for page in (first, second) for line in page["lines"]]
    assert ([f"{stream} began", f"{stream} ended"], task) == (told, first["task"])
    assert (400, WRONG, "partition", "it is missing. Give `partition`.") == client.problem("GET", path)
    status, _, _, said = client.problem("GET", path, query={"partition": "item=z"})
    assert 404 == status
    assert "No task worked item=z in the phase apply." in said


def test_a_report_can_be_had_as_a_page(client: Client, run_id: str) -> None:
    event = event_of("GET", f"/runs/{run_id}/report", headers={"Accept": "text/html,*/*"})
    answer = client.api.handle(event)
    assert (200, "text/html; charset=utf-8") == (answer["statusCode"], answer["headers"]["content-type"])
    assert answer["body"].startswith("<!doctype html>")
    assert run_id in answer["body"]


def test_jobs_and_estimates_come_from_the_catalogue(client: Client) -> None:
    (job,) = client.get("/jobs")["jobs"]
    assert ("numbers", "Numbers.", "list") == (job["name"], job["description"], job["by"])
    status, made = client.call("POST", "/estimate", body={"job": "numbers", "keys": KEYS})
    assert (200, 3) == (status, made["partitions"])
    assert made["dollars"] > 0


def test_the_rejects_of_a_run_become_a_run(world: World, client: Client, run_id: str) -> None:
    status, again = client.call(
        "POST", "/runs", body={"job": "numbers", "requestId": "r-2", "rejectsOf": run_id}
    )
    assert status == 202
    request = world.run(again["runId"]).request
    assert request is not None
    assert ("item=a", "item=b", "item=c") == request.keys


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({"rejectsOf": "RUN", "job": "numbers", "keys": ["a"]}, "rejectsOf", "without a window or keys"),
        ({"rejectsOf": 7, "job": "numbers"}, "rejectsOf", "it names a run"),
        ({"rejectsOf": "RUN", "job": "other"}, "rejectsOf", "did the job numbers"),
    ],
)
def test_rejects_of_a_run_that_cannot_be_worked_again_are_refused(
    client: Client, run_id: str, body: dict[str, Any], field: str, told: str
) -> None:
    body = {**body, "requestId": "r-2"} | ({"rejectsOf": run_id} if body["rejectsOf"] == "RUN" else {})
    status, _, found, text = client.problem("POST", "/runs", body=body)
    assert (400, field) == (status, found)
    assert told in text


def test_rejects_of_a_run_without_any_or_that_is_not_over_are_refused() -> None:
    here = World(job_of(), job_file())
    client = Client(api_of(here))
    run = here.ask()
    body = {"job": "numbers", "requestId": "r-2", "rejectsOf": run.run_id}
    assert "Wait until it has ended." in client.problem("POST", "/runs", body=body)[3]
    here.play(here.execution(run))
    assert "left no rejects" in client.problem("POST", "/runs", body=body)[3]


WRONG = "wrong-request"


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/nothing", (404, "no-route", "There is no /nothing.")),
        ("DELETE", "/runs", (405, "no-method", "It takes POST, GET.")),
        ("GET", "/runs/x", (404, "not-found", "There is no run x.")),
        ("GET", "/runs/x/partitions", (404, "not-found", "There is no run x.")),
        ("GET", "/runs/x/rejects", (404, "not-found", "There is no run x.")),
        ("GET", "/runs/x/audit", (404, "not-found", "There is no run x.")),
    ],
)
def test_what_is_not_there_is_told_with_a_remedy(
    client: Client, method: str, path: str, expected: tuple[int, str, str]
) -> None:
    status, kind, _, told = client.problem(method, path)
    assert expected[:2] == (status, kind)
    assert expected[2] in told


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("limit", "0", "'0': input should be greater than or equal to 1."),
        ("limit", "1001", "'1001': input should be less than or equal to 1000."),
        ("limit", "many", "'many': input should be a valid integer"),
        ("state", "FAILED", "there is no such field. Did you mean `status`?"),
        ("status", "GONE", "'GONE': input should be 'RUNNING', "),
        ("after", "x", "it is no token of this list. Give `next` of the page before, unchanged."),
    ],
)
def test_a_wrong_parameter_is_told_with_a_remedy(client: Client, name: str, value: str, told: str) -> None:
    status, kind, field, found = client.problem("GET", "/runs", query={name: value})
    assert (400, WRONG, name) == (status, kind, field)
    assert told in found


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ("{", "", "the body is no JSON"),
        ([], "", "the body is no JSON object."),
        (None, "", "the body is no JSON object."),
        ({}, "job", "it is missing."),
        ({**START, "job": "numbres"}, "job", "Did you mean `numbers`?"),
        ({**START, "keys": "a"}, "keys", '"a": input should be'),
        ({**START, "params": {"x": 1}}, "params.x", "numbers has no such parameter."),
        ({"job": "numbers", "requestId": "r", "rejectsOf": "r" * 3_000}, "rejectsOf", "it names a run"),
        ({**START, "keys": ["k" * 40] * 9_000}, "keys", "and the ledger keeps 131,072."),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_wrong_body_is_told_with_a_remedy(
    client: Client, world: World, body: Any, field: str, told: str
) -> None:
    status, kind, found, text = client.problem("POST", "/runs", body=body)
    assert (400, WRONG, field) == (status, kind, found)
    assert told in text
    assert not world.steps.executions


@pytest.mark.parametrize(("method", "path"), [(one.method, one.path) for one in ROUTES if "{" in one.path])
def test_a_name_that_no_key_can_hold_is_not_found(client: Client, method: str, path: str) -> None:
    long = path.replace("{runId}", "r" * 3_000).replace("{name}", "apply")
    assert (404, "not-found") == client.problem(method, long, body={"sha256": "0" * 64})[:2]


@pytest.mark.parametrize("partition", ["p" * 3_000, "\U0001f600" * 500])
@pytest.mark.parametrize("what", ["logs", "rejects"])
def test_a_partition_that_no_key_can_hold_is_refused(
    client: Client, run_id: str, what: str, partition: str
) -> None:
    told = client.problem("GET", f"/runs/{run_id}/{what}", query={"partition": partition})
    assert (400, WRONG, "partition") == told[:3]


@pytest.mark.parametrize("unit", ["week", "month", "year"])
@pytest.mark.parametrize(("path", "more"), [("/runs", {"requestId": "r-1"}), ("/estimate", {})])
def test_the_end_of_time_is_inside_a_unit(unit: str, path: str, more: dict[str, str]) -> None:
    there = Client(api_of(World(job_of(), job_file(partitions={"by": "date", "unit": unit}))))
    body = {"job": "numbers", "from": "9998-12-28" if unit == "week" else "9999-01-01", "to": "9999-12-31"}
    status, kind, field, text = there.problem("POST", path, body={**body, **more})
    assert (400, WRONG, "to") == (status, kind, field)
    assert "Begin or end at 9999-" in text


def test_an_estimate_takes_no_request_id(client: Client) -> None:
    assert (400, WRONG, "requestId") == client.problem("POST", "/estimate", body=START)[:3]


def test_a_body_in_base64_is_read(client: Client) -> None:
    event = event_of("POST", "/estimate")
    event |= {
        "body": base64.b64encode(json.dumps({"job": "numbers", "keys": KEYS}).encode()).decode(),
        "isBase64Encoded": True,
    }
    assert 200 == client.api.handle(event)["statusCode"]
    event["body"] = base64.b64encode(b"\xff").decode()
    assert 400 == client.api.handle(event)["statusCode"]


def test_a_store_that_does_not_answer_is_told_as_that(world: World, client: Client) -> None:
    def down(run_id: str) -> Any:
        raise StoreUnavailable("DynamoDB did not do what was asked.", remedy="Ask again.")

    world.ledger.runs.get = down  # type: ignore[method-assign]
    assert (503, "unavailable") == client.problem("GET", "/runs/x")[:2]


def test_a_bug_is_told_without_its_details(
    world: World, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(run_id: str) -> Any:
        raise KeyError("secret")

    world.ledger.runs.get = broken  # type: ignore[method-assign]
    status, kind, _, told = client.problem("GET", "/runs/x")
    assert (500, "fault") == (status, kind)
    assert "secret" not in told
    assert "KeyError: 'secret'" in caplog.text


def test_the_openapi_document_is_what_the_routes_say() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "run python -m trueup.handling.api"


def test_the_page_is_what_the_routes_say() -> None:
    assert reference.FILE.read_text(encoding="utf-8") == reference.text(), "run python -m trueup.handling.api"


def test_every_reference_of_the_document_leads_somewhere() -> None:
    schemas = document()["components"]["schemas"]
    found = {part.split('"')[0] for part in json.dumps(document()).split('"#/components/schemas/')[1:]}
    assert found <= set(schemas)
    assert {"Problem", "RunDetail", "StartBody"} <= found


def test_every_operation_has_a_name_of_its_own_and_says_what_it_does() -> None:
    names = [route.name for route in ROUTES]
    assert len(names) == len(set(names))
    assert all(route.summary.endswith(".") for route in ROUTES)
    assert len(KINDS) == len({kind.name for kind in KINDS})


NAMES = st.sampled_from(["limit", "after", "state", "phase", "status", "job", "partition", "x"])
VALUES = st.sampled_from(["", "0", "1", "5000", "ACCEPTED", "apply", "e30", "eyJhdCI6IiJ9"]) | st.text()
FIELDS = st.sampled_from(
    ["job", "requestId", "keys", "from", "to", "params", "dryRun", "sample", "comment", "rejectsOf"]
)
PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["numbers", "r"])
JSON = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(
    route=st.sampled_from(ROUTES),
    run=st.sampled_from(["RUN", "x", "%00", "a" * 300]) | st.text(min_size=1, max_size=5),
    query=st.dictionaries(NAMES, VALUES, max_size=3),
    body=st.dictionaries(FIELDS, JSON, max_size=6) | JSON,
)
def test_no_call_whatever_its_content_gets_an_undocumented_answer_or_a_fault(
    route: Any, run: str, query: dict[str, str], body: Any
) -> None:
    here = World(job_of(), job_file())
    there = here.ask()
    path = route.path.replace("{runId}", there.run_id if run == "RUN" else run)
    answer = api_of(here).handle(event_of(route.method, path, query=query, body=body))
    assert answer["statusCode"] < 500, answer
    kind = answer["headers"]["content-type"]
    check_answer(route.method, path, answer["statusCode"], kind, json.loads(answer["body"]))


def test_every_status_of_a_run_can_be_asked_for() -> None:
    parameters = {one["name"]: one["schema"] for one in OPENAPI["paths"]["/runs"]["get"]["parameters"]}
    assert [status.value for status in RunStatus] == parameters["status"]["enum"]
