"""Calls on their way through the gateway, with boto3 on one side and a service of the test's on the other."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from trueup.local.aws import client
from trueup.local.faults.board import Board, Subject
from trueup.local.faults.callers import Callers
from trueup.local.faults.gateway import Gateway, run_in_thread
from trueup.local.faults.model import Fault, FaultPlan, fault
from trueup.local.serving import listen

TASK = Subject("r", "rows", 1)
CHECKPOINT = {
    "TableName": "ledger",
    "Key": {"PK": {"S": "RUN#r"}, "SK": {"S": "PART#a"}},
    "UpdateExpression": "SET #a0 = :v0",
    "ExpressionAttributeNames": {"#a0": "cursor"},
    "ExpressionAttributeValues": {":v0": {"S": "v1:1"}},
}


@dataclass
class Service:
    """What arrived, and what it answers."""

    url: str = ""
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    status: int = 200
    body: bytes = b"{}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: Service

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.service.asked.append((self.command, self.path, body))
        self.send_response(self.service.status)
        answer = b"" if self.command == "PUT" else self.service.body
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    methods = {f"do_{method}": _Handler.answer for method in ("GET", "HEAD", "POST", "PUT")}
    handler = type("Handler", (_Handler,), {"service": found, **methods})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@dataclass
class Way:
    """A gateway in front of the service, and clients of who is known to it."""

    url: str
    board: Board
    callers: Callers
    gateway: Gateway

    def client(self, name: str, subject: Subject | None = TASK) -> Any:
        known = (
            {}
            if subject is None
            else self.callers.introduce(subject, "" if subject.function else "arn:task/1")
        )
        sent = known.get("AWS_SDK_UA_APP_ID")
        return client(name, self.url, config=Config(retries={"total_max_attempts": 1}, user_agent_appid=sent))

    def give(self, *faults: Fault) -> None:
        self.board.add(faults)

    def struck(self) -> list[tuple[str, str]]:
        return [(one.fault, one.what) for one in self.board.strikes()]


@pytest.fixture
def way(service: Service) -> Iterator[Way]:
    board, callers = Board(FaultPlan(seed=1)), Callers()
    gateway = Gateway(board, callers)
    gateway.services = {"*": service.url}
    with run_in_thread(gateway, listen()) as url:
        yield Way(url, board, callers, gateway)


def refused(call: Callable[[], object]) -> tuple[str, int]:
    with pytest.raises(ClientError) as refusal:
        call()
    answer = refusal.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def test_a_call_without_faults_passes_both_ways_whole(way: Way, service: Service) -> None:
    data = bytes(range(256)) * 4_000
    service.body = data[::-1]
    s3 = way.client("s3")
    s3.put_object(Bucket="b", Key="a key/ü", Body=data)
    assert data[::-1] == s3.get_object(Bucket="b", Key="a key/ü")["Body"].read()
    s3.head_object(Bucket="b", Key="k")
    methods = [method for method, _, _ in service.asked]
    assert ["PUT", "GET", "HEAD"] == methods
    assert "/b/a%20key/%C3%BC" == service.asked[0][1]
    assert data in service.asked[0][2]


def test_a_refusal_is_worded_as_the_service_would(way: Way, service: Service) -> None:
    """DynamoDB developer guide, "Error handling with DynamoDB"; S3 API reference, "Error responses"."""
    way.give(fault("call-throttled", times=2), fault("call-failed", times=2))
    dynamodb, s3 = way.client("dynamodb"), way.client("s3")

    def get() -> object:
        return dynamodb.get_item(TableName="t", Key={"k": {"S": "a"}})

    def put() -> object:
        return s3.put_object(Bucket="b", Key="k", Body=b"x")

    assert [("ProvisionedThroughputExceededException", 400), ("SlowDown", 503)] == [
        refused(get),
        refused(put),
    ]
    assert [("InternalServerError", 500), ("InternalError", 500)] == [refused(get), refused(put)]
    assert [] == service.asked
    get()
    assert 1 == len(service.asked)
    assert ("call-throttled", "dynamodb GetItem") == way.struck()[0]
    assert ("call-failed", "s3 PutObject") == way.struck()[3]


def test_only_the_operation_that_is_meant_fails(way: Way) -> None:
    way.give(fault("call-failed", service="s3", operation="ListObjectsV2"))
    s3 = way.client("s3")
    s3.get_object(Bucket="b", Key="k")
    way.client("dynamodb").list_tables()
    assert ("InternalError", 500) == refused(lambda: s3.list_objects_v2(Bucket="b"))


def test_a_call_that_is_not_answered_was_not_made_and_one_whose_answer_is_lost_was(
    way: Way, service: Service
) -> None:
    way.give(fault("call-unanswered", seconds=0.1, times=1), fault("call-answer-lost", times=1))
    dynamodb = way.client("dynamodb")
    for made in (0, 1):
        with pytest.raises(ConnectionClosedError):
            dynamodb.list_tables()
        assert made == len(service.asked)
    dynamodb.list_tables()


def test_a_slow_call_takes_its_time(way: Way) -> None:
    way.give(fault("call-slow", seconds=0.3, times=1))
    dynamodb, began = way.client("dynamodb"), time.monotonic()
    dynamodb.list_tables()
    assert time.monotonic() - began >= 0.3


def test_strangers_and_functions_that_are_not_meant_pass(way: Way) -> None:
    way.give(fault("call-failed"), fault("call-throttled", function="accept"))
    way.client("dynamodb", None).list_tables()
    way.client("dynamodb", Subject(function="plan")).list_tables()
    accept = way.client("dynamodb", Subject(function="accept"))
    assert "ProvisionedThroughputExceededException" == refused(accept.list_tables)[0]


def test_a_harm_strikes_with_the_checkpoint_that_it_is_meant_for(way: Way, service: Service) -> None:
    harmed: list[tuple[str, str, int]] = []
    way.gateway.harm = lambda *what: not harmed.append(what)
    way.give(fault("exit", checkpoint=2, code=64))
    dynamodb = way.client("dynamodb")
    dynamodb.update_item(**CHECKPOINT)
    dynamodb.update_item(**{**CHECKPOINT, "ExpressionAttributeNames": {"#a0": "launch"}})  # a take
    service.status = 400
    service.body = b'{"__type": "x#ConditionalCheckFailedException"}'
    assert "ConditionalCheckFailedException" == refused(lambda: dynamodb.update_item(**CHECKPOINT))[0]
    assert [] == harmed
    service.status, service.body = 200, b"{}"
    dynamodb.update_item(**CHECKPOINT)
    dynamodb.update_item(**CHECKPOINT)
    assert [("arn:task/1", "exit", 64)] == harmed
    assert [("exit", "")] == way.struck()


def test_a_checkpoint_whose_answer_is_lost_is_one(way: Way) -> None:
    harmed: list[tuple[str, str, int]] = []
    way.gateway.harm = lambda *what: not harmed.append(what)
    way.give(fault("kill", checkpoint=1), fault("call-answer-lost"))
    with pytest.raises(ConnectionClosedError):
        way.client("dynamodb").update_item(**CHECKPOINT)
    assert ["kill"] == [what for _, what, _ in harmed]


def test_who_is_frozen_at_a_checkpoint_thaws(way: Way) -> None:
    harmed: list[str] = []
    thawed = threading.Event()

    def harm(task: str, what: str, code: int) -> bool:
        harmed.append(what)
        if what == "thaw":
            thawed.set()
        return True

    way.gateway.harm = harm
    way.give(fault("freeze", checkpoint=1, thaw=0.1))
    way.client("dynamodb").update_item(**CHECKPOINT)
    assert thawed.wait(10)
    assert ["freeze", "thaw"] == harmed


def test_a_word_is_lost_said_twice_or_late(way: Way, service: Service) -> None:
    way.give(*(fault(f"callback-{how}", times=1) for how in ("lost", "twice")))
    way.give(fault("callback-late", seconds=1, times=1))
    states = way.client("stepfunctions")
    arrived = []
    for _ in range(3):
        states.send_task_success(taskToken="t", output="{}")
        arrived.append(len(service.asked))
    assert [0, 2, 2] == arrived
    deadline = time.monotonic() + 10
    while not way.board.strikes()[2].answers and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [[], ["", ""], [""]] == [one.answers for one in way.board.strikes()]
    states.send_task_success(taskToken="t", output="{}")
    assert 4 == len(service.asked)


def test_a_heartbeat_is_harmed_where_it_is_named(way: Way, service: Service) -> None:
    way.give(fault("callback-lost", times=1))
    states = way.client("stepfunctions")
    states.send_task_heartbeat(taskToken="t")
    assert [] == way.struck()
    way.board.clear()
    way.give(fault("callback-lost", word="Heartbeat"))
    states.send_task_heartbeat(taskToken="t")
    assert (1, [("callback-lost", "Heartbeat")]) == (len(service.asked), way.struck())


def test_the_answer_to_a_word_that_comes_too_late_is_noted(way: Way, service: Service) -> None:
    service.status = 400
    service.body = b'{"__type": "com.amazonaws#TaskTimedOut"}'
    way.give(fault("callback-twice"))
    with pytest.raises(ClientError, match="TaskTimedOut"):
        way.client("stepfunctions").send_task_success(taskToken="t", output="{}")
    assert ["TaskTimedOut", "TaskTimedOut"] == way.board.strikes()[0].answers


def test_faults_that_are_given_over_http_are_told_to_the_stack(way: Way) -> None:
    added = threading.Event()
    way.gateway.added = added.set
    body = json.dumps({"faults": [{"fault": "kill"}]}).encode()
    with urllib.request.urlopen(f"{way.url}/_faults", body, timeout=10) as answer:  # noqa: S310 - our own
        assert [{"fault": "kill", "struck": 0}] == json.load(answer)["faults"]
    assert added.is_set()
    with pytest.raises(urllib.error.HTTPError, match="400") as refusal:
        urllib.request.urlopen(f"{way.url}/_faults", b'{"seed": 2, "faults": []}', timeout=10)  # noqa: S310
    assert "when the stack starts" in json.load(refusal.value)["error"]


@pytest.mark.parametrize("body", [b'{"faults": ' + b"[" * 100_000, b'{"faults"', b"\xff"])
def test_faults_that_are_no_json_are_refused(way: Way, body: bytes) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400") as refusal:
        urllib.request.urlopen(f"{way.url}/_faults", body, timeout=10)  # noqa: S310 - our own
    error = json.load(refusal.value)["error"]
    assert "has to be JSON" in error
    assert "codec" not in error


def test_a_presigned_call_is_one_of_its_service(way: Way, service: Service) -> None:
    way.give(fault("call-throttled", service="s3", times=1))
    s3 = client("s3", way.url, config=Config(signature_version="s3v4"))
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "k"})
    agent = f"app/{way.callers.introduce(TASK, 'arn:task/1')['AWS_SDK_UA_APP_ID']}"
    call = urllib.request.Request(url, headers={"User-Agent": agent})  # noqa: S310 - our own
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(call, timeout=10)  # noqa: S310
    assert [("call-throttled", "s3 GetObject")] == way.struck()
    assert [] == service.asked


def test_a_service_that_is_gone_breaks_the_connection_and_not_the_gateway(way: Way, service: Service) -> None:
    way.gateway.services = {"*": "http://127.0.0.1:9"}
    with pytest.raises(ConnectionClosedError):
        way.client("dynamodb").list_tables()
    way.gateway.services = {"*": service.url}
    way.client("dynamodb").list_tables()
