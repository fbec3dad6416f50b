"""Known differences through the API and the command line: who may sign, and what is asked before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from trueup.artifacts import comparison_key
from trueup.cli import main
from trueup.model.base import sha256

from .api_cases import ANN, Client, api_of
from .api_server import REGION, be, serving
from .handler_world import World
from .test_cli_api import as_json, told
from .test_handlers_reconcile import drifted, played, world_of

BOB, EVE = ANN.replace("ann", "bob"), ANN.replace("ann", "eve")
UNTIL = "2026-01-20"


@pytest.fixture
def world() -> World:
    """A job of which Bob alone may sign reports."""
    return world_of(drifted(), approval={"roles": ["user/bob"]})


@pytest.fixture
def run_id(world: World) -> str:
    """A run of Ann's that is DRIFT: key 0 is missing, key 99 extra."""
    run, _ = played(world, requester=ANN)
    assert "DRIFT: 2 differences are confirmed" == run.reason
    return run.run_id


def hash_of(world: World, run_id: str) -> str:
    return sha256(world.artifacts.store.get(comparison_key(run_id, "json")))


def word(world: World, run_id: str, **changes: Any) -> dict[str, Any]:
    until = f"{world.clock.now().year + 1}-01-01T00:00:00Z"
    said = {"sha256": hash_of(world, run_id), "until": until, "why": "as agreed", "keys": [["0"]]}
    return {**said, **changes}


def test_bob_signs_and_the_next_run_knows(world: World, run_id: str) -> None:
    client = Client(api_of(world))
    path = f"/runs/{run_id}/known"
    status, known = client.call("POST", path, body=word(world, run_id), caller=BOB)
    assert (200, BOB, 1, run_id) == (status, known["who"], known["number"], known["runId"])
    assert [known] == client.get("/known", job="numbers")["known"]
    assert [] == client.get("/known", job="others")["known"]
    assert (200, known) == client.call("POST", path, body=word(world, run_id), caller=BOB)
    entries = client.get(f"/runs/{run_id}/audit")["entries"]
    assert [(BOB, "as agreed")] == [
        (one["who"], one["why"]) for one in entries if one["verb"] == "sign-known"
    ]
    run, _ = played(world, requestId="r-2", requester=ANN)
    report = client.get(f"/runs/{run.run_id}/comparison")
    assert ("DRIFT", [known["knownId"]]) == (report["verdict"], [one["knownId"] for one in report["known"]])
    assert {"KNOWN": 1, "CONFIRMED": 1} == {one["state"]: one["findings"] for one in report["states"]}


@pytest.mark.parametrize(
    ("caller", "changes", "status", "kind", "said"),
    [
        (ANN, {}, 403, "forbidden", "asked for run"),
        (EVE, {}, 403, "forbidden", "Ask one of user/bob"),
        (BOB, {"sha256": "0" * 64}, 409, "refused", "name its hash"),
        (BOB, {"why": " "}, 400, "wrong-request", "why"),
        (BOB, {"until": "2020-01-01T00:00:00Z"}, 400, "wrong-request", "is not ahead"),
        (BOB, {"keys": [["1"]]}, 400, "wrong-request", "does not confirm that 1 differs"),
    ],
    ids=["the requester", "no role", "another hash", "no reason", "the past", "a key that agrees"],
)
def test_a_word_is_refused_with_what_is_wrong(
    world: World, run_id: str, caller: str, changes: dict[str, Any], status: int, kind: str, said: str
) -> None:
    client = Client(api_of(world))
    body = word(world, run_id, **changes)
    found = client.problem("POST", f"/runs/{run_id}/known", body=body, caller=caller)
    assert (status, kind) == found[:2]
    assert said in found[2] + found[3]
    assert [] == client.get("/known", job="numbers")["known"]


def test_a_run_without_a_report_has_nothing_to_sign(world: World) -> None:
    client = Client(api_of(world))
    run = world.ask(keys=None)
    body = {"sha256": "0" * 64, "until": "2027-01-01T00:00:00Z", "why": "because"}
    status, kind, _, said = client.problem("POST", f"/runs/{run.run_id}/known", body=body, caller=BOB)
    assert (400, "wrong-request") == (status, kind)
    assert "no report of a comparison yet" in said
    assert 404 == client.problem("POST", "/runs/none/known", body=body, caller=BOB)[0]


@pytest.fixture
def served(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The world behind an address, with Bob at the keyboard."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with serving(api_of(world), lambda *_: None) as address:
        monkeypatch.setenv("TRUEUP_API", address)
        be(monkeypatch, "AKIABOB")
        yield world


def test_the_command_line_shows_the_report_and_wants_its_hash(
    served: World, run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = hash_of(served, run_id)
    until = f"{served.clock.now().year + 1}-01-01"
    asked = ["sign", run_id, "--until", until, "--why", "as agreed", "--key", "0"]
    assert 2 == main([*asked, "--sha", "0" * 8])
    said = capsys.readouterr()
    assert digest in said.out
    assert "is not how the hash of the report begins" in said.err
    assert f"Look at it with `trueup report {run_id}`" in said.err
    assert 2 == main(asked)
    assert "nobody is here to type it" in capsys.readouterr().err
    assert [] == as_json(capsys, "known", "numbers")["known"]
    out = told(capsys, *asked, "--sha", digest[:8])
    assert f"1 differences are known until {until} 00:00:00 UTC" in out
    listed = told(capsys, "known", "numbers")
    for part in ("user/bob", "as agreed", run_id):
        assert part in listed


def test_bob_withdraws_and_the_next_run_knows_no_more(world: World, run_id: str) -> None:
    client = Client(api_of(world))
    known = client.call("POST", f"/runs/{run_id}/known", body=word(world, run_id), caller=BOB)[1]
    path = f"/runs/{run_id}/known/{known['knownId']}/withdraw"
    found = client.problem("POST", path, body={"why": "through"}, caller=EVE)
    assert (403, "forbidden") == found[:2]
    assert 400 == client.problem("POST", path, body={"why": " "}, caller=BOB)[0]
    assert 404 == client.problem("POST", path.replace(run_id, "none"), body={"why": "x"}, caller=BOB)[0]
    other = path.replace(known["knownId"], "none")
    assert 404 == client.problem("POST", other, body={"why": "x"}, caller=BOB)[0]
    assert [known] == client.get("/known", job="numbers")["known"]
    status, back = client.call("POST", path, body={"why": "through"}, caller=BOB)
    assert (200, BOB, "through") == (status, back["withdrawn"]["who"], back["withdrawn"]["why"])
    assert (200, back) == client.call("POST", path, body={"why": "again"}, caller=BOB)
    assert [] == client.get("/known", job="numbers")["known"]
    entries = client.get(f"/runs/{run_id}/audit")["entries"]
    told = [(one["who"], one["why"]) for one in entries if one["verb"] == "withdraw-known"]
    assert [(BOB, "through")] == told
    run, _ = played(world, requestId="r-2", requester=ANN)
    report = client.get(f"/runs/{run.run_id}/comparison")
    assert ("DRIFT", []) == (report["verdict"], report["known"])
    assert {"CONFIRMED"} == {one["state"] for one in report["states"]}
    refused = client.problem("POST", f"/runs/{run_id}/known", body=word(world, run_id), caller=BOB)
    assert (409, "refused") == refused[:2]
    assert "were withdrawn by" in refused[3]


def test_the_command_line_withdraws_by_the_id_that_known_shows(
    served: World, run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    until = f"{served.clock.now().year + 1}-01-01"
    asked = ["sign", run_id, "--until", until, "--why", "as agreed", "--key", "0"]
    told(capsys, *asked, "--sha", hash_of(served, run_id)[:8])
    (known,) = as_json(capsys, "known", "numbers")["known"]
    assert known["knownId"] in told(capsys, "known", "numbers")
    assert 2 == main(["withdraw", run_id, "none", "--why", "through"])
    assert "Nobody signed known differences none" in capsys.readouterr().err
    assert 2 == main(["withdraw", run_id, "", "--why", "through"])
    assert "ID is empty" in capsys.readouterr().err
    out = told(capsys, "withdraw", run_id, known["knownId"], "--why", "through")
    assert "1 differences are not known any more: withdrawn by user/bob at" in out
    assert [] == as_json(capsys, "known", "numbers")["known"]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--until", "soon", "is no day and no instant"), ("--key", "[1]", "is no array of texts")],
)
def test_nonsense_is_told_before_anything_is_asked(
    served: World, capsys: pytest.CaptureFixture[str], option: str, value: str, said: str
) -> None:
    words = {"--until": UNTIL, "--why": "because", option: value}
    assert 2 == main(["sign", "none", *(part for pair in words.items() for part in pair)])
    assert said in capsys.readouterr().err
