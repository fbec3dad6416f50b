"""Requests are checked before anything is created; each refusal names the field and the remedy."""

from __future__ import annotations

import pytest

from trueup.errors import RequestError
from trueup.model.job import JobFile
from trueup.requests import check_request, read_request

TARGET = {"name": "table", "guard": "key"}
JOBS = {
    "days": JobFile.model_validate(
        {
            "name": "days",
            "class": "module:Job",
            "partitions": {"by": "date"},
            "target": TARGET,
            "parameters": {
                "type": "object",
                "properties": {"most": {"type": "integer", "default": 3}, "carrier": {"type": "string"}},
            },
        }
    ),
    "tenants": JobFile.model_validate(
        {
            "name": "tenants",
            "class": "module:Job",
            "partitions": {"by": "list", "items": ["acme", "zeta"]},
            "target": TARGET,
            "secrets": {"write": {"db": "prod/db"}},
        }
    ),
}


def make(job="days", **more):
    given = {"job": job, "requestId": "r-1", "requester": "me"}
    if job == "days" and "keys" not in more:
        given |= {"from": "2024-01-01", "to": "2024-02-01"}
    return {**given, **more}


def without(name):
    return {field: value for field, value in make().items() if field != name}


def test_a_good_request_comes_with_its_job_and_its_parameters_filled_in():
    job, request, params = check_request(make(params={"carrier": "AA"}), JOBS)
    assert ("days", "2024-01-01", {"carrier": "AA", "most": 3}) == (job.name, request.start, params)


def test_a_lower_concurrency_is_the_jobs_for_this_request():
    job, _, _ = check_request(make(maxConcurrency=2), JOBS)
    assert 2 == job.limits.max_concurrency


@pytest.mark.parametrize(
    ("data", "field", "message"),
    [
        (make("dayz"), "job", "no job is called 'dayz'. Did you mean `days`?"),
        (make("other"), "job", "no job is called 'other'. Known: days, tenants."),
        (without("job"), "job", "it is missing. Give `job`."),
        (without("requester"), "requester", "it is missing."),
        (without("to"), "from", "a window needs both ends: give `from` and `to`."),
        (
            make(keys=["2024-01-01"], **{"from": "2024-01-01"}),
            "from",
            "give a window (`from` and `to`) or `keys`, not",
        ),
        (
            make(keys=["a"], **{"from": "1", "to": "2"}),
            "from",
            "give a window (`from` and `to`) or `keys`, not both",
        ),
        (make(form="2024-01-01"), "form", "there is no such field. Did you mean `from`?"),
        (make(dryRun="yes"), "dryRun", '"yes": input should be a valid boolean'),
        (make(**{"from": 20240101}), "from", "20240101: input should be a valid string"),
        (make(requestId="a b"), "requestId", '"a b": string should match pattern'),
        (
            make(maxConcurrency=17),
            "maxConcurrency",
            "17 tasks at once are more than the job file allows, 16.",
        ),
        (make(params={"most": "3"}), "params.most", '"3" is not of type integer. Give an integer.'),
        (make(params={"mots": 3}), "params.mots", "days has no such parameter. Did you mean `most`?"),
        (make(to="2024-01-01"), "to", "the window from 2024-01-01 to 2024-01-01 is empty."),
        (make(to="2023-01-01"), "to", "the window from 2024-01-01 to 2023-01-01 runs backwards."),
        (make(to="01/02/2024"), "to", "'01/02/2024' is not a day. Write it like 2024-01-31."),
        (make(keys=["2024-01-40"]), "keys", "'2024-01-40' is not a day."),
        (
            make("tenants", keys=["acne"]),
            "keys",
            "no partition is called 'acne'. The job has 2, such as 'acme'.",
        ),
        (make("tenants", **{"from": "a", "to": "b"}), "from", "this job works a list"),
        (
            make(keys=["2024-01-01"] * 14_000),
            "keys",
            "the 14,000 keys have 140,000 bytes, and the ledger keeps 131,072. Give a window, or ask",
        ),
        (
            make(params={"carrier": "é" * 33_000}),
            "params",
            "the parameters have 66,023 bytes as JSON, and the ledger keeps 65,536. Put what is large into",
        ),
        (make(comment="x" * 4_001), "comment", '"xxx'),
        (make(requester="x" * 1_001), "requester", '"xxx'),
        (make(to="2" * 1_001), "to", '"222'),
        (make("tenants", keys=["a\ud800"]), "keys", r"""'["a\ud800' is not Unicode: it holds half of a"""),
        (make(requester="\udfff"), "requester", r"""'"\udfff' is not Unicode"""),
        (make("tenants", dryRun=True), "dryRun", "tenants has no dry run: its only secrets can write."),
    ],
)
def test_a_bad_request_is_refused_with_its_field_and_remedy(data, field, message):
    with pytest.raises(RequestError) as refused:
        check_request(data, JOBS)
    assert field == refused.value.field
    assert f"{field}: {message}" in str(refused.value)


def test_all_wrong_fields_are_told():
    with pytest.raises(RequestError) as refused:
        read_request({"job": "days", "requester": "", "x": 1})
    assert {"requestId", "requester", "x"} == {line.split(":")[0] for line in str(refused.value).splitlines()}
