"""The evidence of many objects: a manifest in parts, an answer page by page, and all of it in a copy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trueup.artifacts import evidence_key
from trueup.artifacts.store import place
from trueup.cli import main
from trueup.model.base import sha256
from trueup.model.evidence import CheckedEvidence
from trueup.reporting import Reports

from .api_cases import Client, api_of, event_of
from .api_server import be, serving
from .handler_world import World
from .test_cli_evidence import files, manifest
from .test_handlers_repair import approve, waiting

IN_MANIFEST, IN_A_PART = 3, 4


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world with one repair, whose manifest has room for little, behind a socket."""
    monkeypatch.setattr("trueup.reporting.evidence.MOST_IN_MANIFEST", IN_MANIFEST)
    monkeypatch.setattr("trueup.reporting.evidence.MOST_IN_A_PART", IN_A_PART)
    world, _, execution, gate = waiting()
    approve(world, gate)
    world.play(execution)
    be(monkeypatch, "AKIAANN")
    with serving(api_of(world)) as address:
        monkeypatch.setenv("TRUEUP_API", address)
        yield world


@pytest.fixture
def run_id(world: World) -> str:
    ((found, _),) = world.ledger.runs.newest()
    return found


def lines(world: World, run_id: str) -> list[dict[str, Any]]:
    """All that the manifest and its parts name."""
    found = manifest(world, run_id)
    parts = [world.artifacts.store.get(place(one.location)[1]) for one in found.more]
    more = [json.loads(line) for part in parts for line in part.splitlines()]
    return [*(one.document() for one in found.objects), *more]


def test_a_manifest_names_what_it_has_no_room_for_in_parts_by_their_hashes(world: World, run_id: str) -> None:
    found = manifest(world, run_id)
    every = lines(world, run_id)
    assert IN_MANIFEST == len(found.objects)
    assert len(found.more) == -((IN_MANIFEST - len(every)) // IN_A_PART) > 3
    assert [IN_A_PART] * (len(found.more) - 1) == [one.objects for one in found.more[:-1]]
    for one in found.more:
        assert one.sha256 == sha256(world.artifacts.store.get(place(one.location)[1]))
    assert len(every) == len({one["location"] for one in every})
    kinds = {"plan", "report", "repair", "findings", "repair plan", "verification"}
    assert {*kinds, "before-images and outcomes"} == {one["kind"] for one in every}


@pytest.mark.parametrize("limit", [1, 3, 4, 5, 1000])
def test_pages_give_each_object_once_and_in_order(world: World, run_id: str, limit: int) -> None:
    client = Client(api_of(world))
    found: list[Any] = []
    after: dict[str, str] = {}
    while True:
        page = client.get(f"/runs/{run_id}/evidence", limit=str(limit), **after)
        assert page["sha256"] == sha256(world.artifacts.store.get(evidence_key(run_id)))
        assert limit >= len(page["manifest"]["objects"]) > 0
        found += page["manifest"]["objects"]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert lines(world, run_id) == found


def test_a_page_asks_s3_about_its_own_objects_and_the_first_about_the_parts(
    world: World, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    whole = world.artifacts.store.checksum
    monkeypatch.setattr(
        world.artifacts.store, "checksum", lambda location: asked.append(location) or whole(location)
    )
    there = world.artifacts.store.location(evidence_key(run_id))  # whether there is a manifest is asked, too
    first = world.reports.evidence(run_id, limit=2)
    parts = [one.location for one in first.manifest.more]
    assert {there, *parts, *(one.location for one in first.manifest.objects)} == set(asked)
    asked.clear()
    second = world.reports.evidence(run_id, limit=2, after=first.next)
    assert {there, *(one.location for one in second.manifest.objects)} == set(asked)


def test_no_page_is_larger_than_a_function_may_answer(
    world: World, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueup.watching.room.MOST_BYTES", 4_000)
    client = Client(api_of(world))
    whole = api_of(world).handle(event_of("GET", f"/runs/{run_id}/evidence"))
    page = CheckedEvidence.model_validate_json(whole["body"])
    assert 0 < len(page.manifest.objects) < len(lines(world, run_id))
    assert page.next is not None
    rest = client.get(f"/runs/{run_id}/evidence", after=page.next)["manifest"]["objects"]
    assert lines(world, run_id)[len(page.manifest.objects)] == rest[0]


def test_a_mark_that_is_none_is_refused(world: World, run_id: str) -> None:
    client = Client(api_of(world))
    for query in ({"after": "nonsense"}, {"limit": "0"}, {"limit": "1001"}):
        assert 400 == client.problem("GET", f"/runs/{run_id}/evidence", query=query)[0]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two objects are all that is answered at once."""
    whole = Reports.evidence
    monkeypatch.setattr(
        Reports,
        "evidence",
        lambda self, of, *, limit, after=None: whole(self, of, limit=min(limit, 2), after=after),
    )


def test_the_command_lists_all_pages_and_copies_all_parts(
    world: World, run_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], small_pages: None
) -> None:
    assert 0 == main(["evidence", run_id, "--to", str(tmp_path / "copy"), "--json"])
    told = json.loads(capsys.readouterr().out)
    every = lines(world, run_id)
    assert (every, {}, None) == (told["manifest"]["objects"], told["changed"], told["next"])
    copied = files(tmp_path / "copy")
    sums = copied.pop("SHA256SUMS").decode().splitlines()
    store = world.artifacts.store
    more = [place(one.location)[1] for one in manifest(world, run_id).more]
    keys = [evidence_key(run_id), *more, *(place(one["location"])[1] for one in every)]
    kept = {key.removeprefix(f"runs/{run_id}/"): store.get(key) for key in keys}
    assert kept == copied
    assert {f"{sha256(data)}  {name}" for name, data in kept.items()} == set(sums)


def test_what_was_changed_is_told_from_whatever_page_it_is_on(
    world: World, run_id: str, capsys: pytest.CaptureFixture[str], small_pages: None
) -> None:
    for one in (lines(world, run_id)[0], lines(world, run_id)[-1]):
        world.artifacts.store.put(place(one["location"])[1], b"other")
    assert 1 == main(["evidence", run_id])
    assert 2 == capsys.readouterr().out.count("CHANGED")


def test_a_part_of_the_manifest_that_was_changed_is_told_and_not_believed(
    world: World, run_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], small_pages: None
) -> None:
    part = manifest(world, run_id).more[1]
    key = place(part.location)[1]
    data = world.artifacts.store.get(key)
    hashes = [json.loads(line)["sha256"] for line in data.splitlines()]
    secret = b"not evidence"
    world.artifacts.store.put(f"runs/{run_id}/other.json", secret)
    world.artifacts.store.put(key, data.replace(hashes[0].encode(), sha256(secret).encode()))
    assert 1 == main(["evidence", run_id, "--to", str(tmp_path / "copy"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [part.location] == list(told["changed"])
    assert set(hashes).isdisjoint(one["sha256"] for one in told["manifest"]["objects"])
    assert [] == list(tmp_path.iterdir())
    assert 1 == main(["evidence", run_id])
    (line,) = (one for one in capsys.readouterr().out.splitlines() if part.location in one)
    assert "CHANGED" in line
    for digest in (sha256(secret), hashes[0]):
        assert 404 == Client(api_of(world)).problem("GET", f"/runs/{run_id}/evidence/{digest}")[0]


def test_pages_of_two_manifests_are_not_put_together(
    run_id: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], small_pages: None
) -> None:
    whole = Reports.evidence

    def other(self: Reports, of: str, *, limit: int, after: str | None = None) -> CheckedEvidence:
        page = whole(self, of, limit=limit, after=after)
        return page if after is None else page.model_copy(update={"sha256": "0" * 64})

    monkeypatch.setattr(Reports, "evidence", other)
    assert 1 == main(["evidence", run_id])
    assert f"pages of two manifests of {run_id}" in capsys.readouterr().err
