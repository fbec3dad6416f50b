"""The API, asked by schemathesis whatever its OpenAPI document allows, and whatever that does not.

Every answer has to be one that the document knows, in the form that it says; none may be a fault of the API;
what the document forbids is refused, and so is whoever did not sign.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from trueup.handling.api.openapi import document
from trueup.handling.api.routes import ROUTES, Route

from .api_cases import OPENAPI, Client, api_of
from .api_gateway import SIGNED, gateway
from .handler_world import World
from .test_api import BROKEN, START
from .worker_cases import job_file, job_of

HEADERS = {"Authorization": SIGNED}
# A schema cannot say which jobs there are, nor which tokens were given: those are refused with 400 or 404.
# What is forbidden of a query may be lost on its way into an address (`?x=` of an empty list): asked below.
NOT_ASKED = [positive_data_acceptance, negative_data_rejection]
SETTINGS = settings(
    max_examples=30,
    stateful_step_count=8,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
IDS = [f"{route.method} {route.path}" for route in ROUTES]


@dataclass
class Served:
    """A world with a run that is over, its API behind a gateway, and what was answered to which addresses."""

    answers: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(job_of(**BROKEN), job_file(errors={"rejects": 1}))
        api = api_of(self.world)
        _, started = Client(api).call("POST", "/runs", body=START)
        self.run_id = str(started["runId"])
        self.world.play(self.world.steps.executions[started["execution"]])
        self.schema = schemathesis.openapi.from_dict(OPENAPI)
        self.schema.app = gateway(api)

    @property
    def statuses(self) -> set[int]:
        """Every status that was answered."""
        return {status for status, _ in self.answers}

    def ask(self, case: Case) -> None:
        """Ask as somebody who signed, and hold the answer to the document."""
        answer = case.call(headers=HEADERS)
        self.answers.append((answer.status_code, answer.request.url or ""))
        case.validate_response(answer, excluded_checks=NOT_ASKED, headers=HEADERS)


def asked(served: Served, route: Route, mode: GenerationMode, run: str | None) -> None:
    """Ask a route for many things, of a run that is there or of any."""
    operation = served.schema[route.path][route.method]
    pinned = {"runId": run} if run and "{runId}" in route.path else None
    known = {"partition": "item=a"} if run and route.name == "showLogs" else None

    @SETTINGS
    @given(case=operation.as_strategy(mode, path_parameters=pinned, query=known))
    def ask(case: Case) -> None:
        served.ask(case)

    ask()


OF_RECONCILIATIONS = {"showComparison", "showEvidence", "showEvidenceObject", "showRepair"}


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_what_the_document_allows_is_answered_as_it_says(route: Route) -> None:
    served = Served()
    asked(served, route, GenerationMode.POSITIVE, served.run_id)
    # That good answers were among them, and not only refusals of what nobody knows.
    # The run is a backfill: it has no comparison, no repair and no evidence.
    if route.method == "GET":
        assert (404 if route.name in OF_RECONCILIATIONS else 200) in served.statuses
    asked(served, route, GenerationMode.POSITIVE, None)


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.body or route.query], ids=lambda one: one.name
)
def test_what_the_document_forbids_is_refused(route: Route) -> None:
    served = Served()
    asked(served, route, GenerationMode.NEGATIVE, served.run_id)
    # 403: a signature is a header of the document, too, and may be left out or be nonsense.
    assert 400 in served.statuses
    refused = {400, 403, 404}
    assert [] == [url for status, url in served.answers if status not in refused and not allows(route, url)]


def allows(route: Route, url: str) -> bool:
    """Whether the document allows the query of an address. Bodies reach the API as they are, so are not."""
    if route.body is not None:
        return False
    parameters = OPENAPI["paths"][route.path][route.method.lower()]["parameters"]
    named = {one["name"]: one["schema"] for one in parameters if one["in"] == "query"}
    required = [one["name"] for one in parameters if one["in"] == "query" and one["required"]]
    schema = {"properties": named, "required": required, "additionalProperties": False}
    query: dict[str, Any] = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    for name in ("limit", "offset"):
        if query.get(name, "").isdecimal():
            query[name] = int(query[name])
    return Draft202012Validator(schema).is_valid(query)


def test_what_one_call_started_the_next_ones_find() -> None:
    """By the links of the document: a run that was started is shown, with its partitions and all."""
    served = Served()
    links = OPENAPI["paths"]["/runs"]["post"]["responses"]["202"]["links"]
    assert {route.name for route in ROUTES if "{runId}" in route.path} == set(links)
    followed: set[str] = set()
    starts = count(1)

    class Following(served.schema.as_state_machine()):  # type: ignore[misc]
        def before_call(self, case: Case) -> None:
            # A schema cannot say which jobs there are: every other start is of one that is there.
            if case.path == "/runs" and case.method == "POST" and (number := next(starts)) % 2:
                case.body = {**START, "requestId": f"r-{number}"}

        def get_call_kwargs(self, case: Case) -> dict[str, Any]:
            return {"headers": HEADERS}

        def validate_response(self, response: Any, case: Case, **more: Any) -> None:
            if "{runId}" in case.path and response.status_code in (200, 202):
                followed.add(case.path)
            case.validate_response(response, excluded_checks=NOT_ASKED, headers=HEADERS)

    Following.run(settings=SETTINGS)
    assert followed


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "AWS4-HMAC-SHA256 Credential=eve"}])
def test_whoever_did_not_sign_is_refused_as_the_document_says(route: Route, headers: dict[str, str]) -> None:
    served = Served()
    operation = served.schema[route.path][route.method]

    @settings(SETTINGS, max_examples=5)
    @given(case=operation.as_strategy())
    def ask(case: Case) -> None:
        answer = case.call(headers=headers)
        assert answer.status_code == 403
        case.validate_response(answer, excluded_checks=NOT_ASKED)

    ask()


def test_the_document_is_itself_in_order() -> None:
    schemathesis.openapi.from_dict(document()).validate()
