"""A copy of the evidence: all of it as its hashes say, in a folder of its own, or nothing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.artifacts import evidence_key
from trueup.artifacts.store import place
from trueup.cli import COMMANDS, fetching, main
from trueup.cli.fetching import file_name
from trueup.errors import StoreUnavailable
from trueup.model.base import canonical, sha256
from trueup.model.evidence import Evidence, EvidenceObject
from trueup.model.ledger import AuditEntry
from trueup.reporting import evidence

from .api_cases import Client, api_of, event_of
from .api_server import be, serving
from .handler_world import World
from .test_handlers_repair import approve, waiting


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world with one reconciliation that was repaired, behind a socket, called by ann."""
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


def manifest(world: World, run_id: str) -> Evidence:
    return Evidence.model_validate_json(world.artifacts.store.get(evidence_key(run_id)))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_of_it_is_copied_as_its_hashes_say(
    world: World, run_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["evidence", run_id, "--to", str(tmp_path / "copy")])
    out = capsys.readouterr().out
    assert f"All of it is in {tmp_path / 'copy'}" in out
    assert "It holds rows as they were before the repair, in the clear" in out
    found = files(tmp_path / "copy")
    store = world.artifacts.store
    keys = [place(one.location)[1] for one in manifest(world, run_id).objects]
    kept = {key.removeprefix(f"runs/{run_id}/"): store.get(key) for key in [*keys, evidence_key(run_id)]}
    sums = found.pop("SHA256SUMS").decode()
    assert kept == found
    assert {"comparison.json", "repair.json", "plan.json", "evidence.json"} < set(found)
    assert {f"{sha256(data)}  {name}" for name, data in kept.items()} == set(sums.splitlines())
    sha256sum = shutil.which("sha256sum")
    assert sha256sum
    subprocess.run([sha256sum, "--quiet", "-c", "SHA256SUMS"], cwd=tmp_path / "copy", check=True)
    assert [tmp_path / "copy"] == list(tmp_path.iterdir())
    assert 0o700 == stat.S_IMODE((tmp_path / "copy").stat().st_mode)


def test_the_example_of_the_command_works(
    run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert 0 == main(["evidence", "--help"])
    assert "Example: trueup evidence" in " ".join(capsys.readouterr().out.split())
    example = re.sub(r"flights-reconcile-\d{8}T\d{6}Z-[a-z]{4}", run_id, COMMANDS["evidence"].EXAMPLE)
    program, *words = shlex.split(example)
    assert "trueup" == program
    assert 0 == main([*words, "--json"])
    assert "evidence" == json.loads(capsys.readouterr().out)["folder"]
    assert (tmp_path / "evidence" / "evidence.json").is_file()


def test_who_downloads_is_on_the_trail_once_for_each_object(
    world: World, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "PART_BYTES", 50)
    assert 0 == main(["evidence", run_id])
    assert [] == readings(world, run_id)
    assert 0 == main(["evidence", run_id, "--to", str(tmp_path / "copy")])
    told = readings(world, run_id)
    assert {f"arn:aws:iam::123456789012:user/{name}" for name in ("ann",)} == {one.who for one in told}
    names = {one.location: (f"evidence: {one.kind}", one.sha256) for one in manifest(world, run_id).objects}
    found = {one.after["location"]: (one.subject, one.after["sha256"]) for one in told}
    (key,) = found.keys() - names.keys()
    assert key.endswith("evidence.json")
    assert (names, len(names) + 1) == ({name: found[name] for name in names}, len(told))
    assert "evidence: before-images and outcomes" in {one.subject for one in told}
    assert 0 == main(["evidence", run_id, "--to", str(tmp_path / "again")])
    assert 2 * len(told) == len(readings(world, run_id))


def test_whoever_leaves_out_the_beginning_is_on_the_trail_too(world: World, run_id: str) -> None:
    (before,) = [one for one in manifest(world, run_id).objects if one.kind == "repair"]
    path = f"/runs/{run_id}/evidence/{before.sha256}"
    for offset in (1, 2):
        assert 200 == Client(api_of(world)).call("GET", path, query={"offset": str(offset)})[0]
    (told,) = readings(world, run_id)
    assert ("evidence: repair", before.sha256) == (told.subject, told.after["sha256"])


def test_bytes_are_not_given_where_the_trail_cannot_be_written(
    world: World, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = [one for one in manifest(world, run_id).objects if one.kind == "repair"]

    def silent(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("DynamoDB did not answer.")

    monkeypatch.setattr(world.ledger.audit, "downloaded", silent)
    path = f"/runs/{run_id}/evidence/{one.sha256}"
    assert 503 == Client(api_of(world)).problem("GET", path)[0]


def readings(world: World, run_id: str) -> list[AuditEntry]:
    return [one for one in world.ledger.audit.of(run_id) if one.verb == "read-evidence"]


def test_nothing_is_written_over(run_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full, file, empty = (tmp_path / name for name in ("full", "file", "empty"))
    full.mkdir()
    (full / "mine").write_text("mine")
    file.write_text("mine")
    empty.mkdir()
    for there in (full, file):
        assert 2 == main(["evidence", run_id, "--to", str(there)])
        assert f"{there} is there already, and nothing is written over." in capsys.readouterr().err
    assert ({"mine": b"mine"}, "mine") == (files(full), file.read_text())
    assert 2 == main(["evidence", run_id, "--to", str(tmp_path / "no" / "copy")])
    assert f"{tmp_path / 'no'} is no folder." in capsys.readouterr().err
    assert 0 == main(["evidence", run_id, "--to", str(empty)])
    assert {full, file, empty} == set(tmp_path.iterdir())


def test_what_was_changed_before_is_told_and_nothing_is_copied(
    world: World, run_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = manifest(world, run_id).objects[0]
    world.artifacts.store.put(place(one.location)[1], b"other")
    assert 1 == main(["evidence", run_id, "--to", str(tmp_path / "copy")])
    told = capsys.readouterr()
    assert "CHANGED" in told.out
    assert "Nothing was downloaded: 1 objects are not what they were." in told.err
    assert [] == list(tmp_path.iterdir())


def test_bytes_that_are_not_what_was_hashed_leave_nothing(
    world: World,
    run_id: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    read = world.artifacts.store.get_range

    def other(key: str, offset: int, length: int) -> bytes:
        data = read(key, offset, length)
        return data[:-2] + b"!\n" if key.endswith("repair.json") else data

    monkeypatch.setattr(world.artifacts.store, "get_range", other)
    assert 1 == main(["evidence", run_id, "--to", str(tmp_path / "copy")])
    assert "repair.json came with the SHA-256" in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


def _interrupt(*args: Any) -> None:
    raise KeyboardInterrupt


def _no_room(*args: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("what", "does", "code", "said"),
    [
        ("_part", _interrupt, 130, ""),
        ("os.fsync", _no_room, 2, "cannot be written: No space left on device. Nothing was kept."),
        ("Path.rename", _no_room, 2, "cannot be written"),
    ],
)
def test_whatever_ends_a_copy_leaves_nothing_of_it(
    run_id: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
    does: Callable[..., None],
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr(f"trueup.cli.fetching.{what}", does)
    assert code == main(["evidence", run_id, "--to", str(tmp_path / "copy")])
    assert said in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


def test_sigterm_ends_a_copy_in_order_and_is_what_it_was_afterwards(
    run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("trueup.cli.fetching._part", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    assert 128 + signal.SIGTERM == main(["evidence", run_id, "--to", str(tmp_path / "copy")])
    assert [] == list(tmp_path.iterdir())
    assert before is signal.getsignal(signal.SIGTERM)


def test_large_objects_come_in_parts(
    world: World, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "PART_BYTES", 64)
    assert 0 == main(["evidence", run_id, "--to", str(tmp_path / "copy")])
    assert len(files(tmp_path / "copy")["repair.json"]) > 640


def test_no_answer_is_larger_than_a_function_may_give(world: World, run_id: str, tmp_path: Path) -> None:
    data = random.Random(1).randbytes(5 * 2**20)
    location = world.artifacts.store.location(f"runs/{run_id}/repair/findings/all/large.jsonl")
    world.artifacts.store.put(place(location)[1], data)
    large = EvidenceObject(kind="findings", location=location, sha256=sha256(data))
    before = manifest(world, run_id)
    more = before.model_copy(update={"objects": [*before.objects, large]})
    world.artifacts.store.put(evidence_key(run_id), canonical(more.document()))
    answer = api_of(world).handle(event_of("GET", f"/runs/{run_id}/evidence/{large.sha256}"))
    assert len(json.dumps(answer)) < 6 * 10**6
    assert json.loads(answer["body"])["next"] == evidence.PART_BYTES
    assert 0 == main(["evidence", run_id, "--to", str(tmp_path / "copy")])
    assert data == (tmp_path / "copy" / "repair/findings/all/large.jsonl").read_bytes()


def test_nothing_can_be_asked_for_that_the_manifest_does_not_name(world: World, run_id: str) -> None:
    client = Client(api_of(world))
    secret = b"not evidence"
    world.artifacts.store.put(f"runs/{run_id}/other.json", secret)
    for digest in (sha256(secret), "0" * 64, "evidence.json", ".."):
        status, _, _, told = client.problem("GET", f"/runs/{run_id}/evidence/{digest}")
        assert (404, True) == (status, f"has nothing with the SHA-256 {digest}" in told)
    assert 404 == client.problem("GET", f"/runs/none/evidence/{'0' * 64}")[0]
    assert 400 == client.problem("GET", f"/runs/{run_id}/evidence/{'0' * 64}", query={"offset": "-1"})[0]
    assert {"data": "", "next": None} == {
        name: part
        for name, part in client.get(
            f"/runs/{run_id}/evidence/{manifest(world, run_id).objects[0].sha256}", offset="999999"
        ).items()
        if name != "sha256"
    }


def test_an_object_that_is_gone_is_told_as_that(world: World, run_id: str) -> None:
    one = manifest(world, run_id).objects[0]
    del world.artifacts.store._objects[place(one.location)[1]]  # type: ignore[attr-defined]
    status, _, _, told = Client(api_of(world)).problem("GET", f"/runs/{run_id}/evidence/{one.sha256}")
    assert (404, True) == (status, "is there no more" in told)


@pytest.mark.parametrize(
    "part", [{"data": "!", "next": None}, {"data": "AA==", "next": 0}, {"data": 7, "next": None}]
)
def test_an_api_that_answers_nonsense_is_not_believed(
    run_id: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    part: dict[str, Any],
) -> None:
    get = fetching.Client.get

    def answered(self: fetching.Client, path: str, **query: Any) -> Any:
        return part if re.search("/evidence/", path) else get(self, path, **query)

    monkeypatch.setattr(fetching.Client, "get", answered)
    assert 1 == main(["evidence", run_id, "--to", str(tmp_path / "copy")])
    assert "The API answered what is no part of" in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_no_name_of_an_object_leads_out_of_the_folder(parts: list[str]) -> None:
    name = file_name("r-1", f"s3://b/runs/r-1/{'/'.join(parts)}")
    pieces = name.split("/")
    assert {"", ".", ".."}.isdisjoint(pieces)
    assert all(len(piece.encode()) <= 255 and piece.isprintable() and "\\" not in piece for piece in pieces)


@given(st.text(), st.text())
def test_two_objects_have_two_names(one: str, other: str) -> None:
    names = [file_name("r-1", f"s3://b/runs/r-1/x/{key}") for key in (one, other)]
    assert (one == other) == (names[0] == names[1])


def test_long_partitions_keep_their_names_apart() -> None:
    names = {file_name("r", f"s3://b/runs/r/{'ä' * 200}{end}/0.jsonl") for end in "ab"}
    assert 2 == len(names)
    digest = hashlib.sha256(f"{'ä' * 200}a".encode()).hexdigest()[:12]
    assert any(f"-{digest}/" in name for name in names)
