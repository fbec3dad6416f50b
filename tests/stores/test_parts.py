"""A server that ends is named to whoever waits for something of the stack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trueup.errors import LocalStackError
from trueup.local.parts import Parts
from trueup.local.process import Guard, Program, guard

SH = "/bin/sh"


@pytest.fixture
def under() -> Iterator[Guard]:
    with guard("tu-") as made:
        yield made


def _parts(under: Guard, script: str) -> Parts:
    parts = Parts()
    parts.add(under.serve("Served", [SH, "-c", script], env={}))
    return parts


def test_who_waits_hears_of_an_end_with_its_last_words(under: Guard) -> None:
    parts = _parts(under, "echo one; echo bye >&2; exit 3")
    with pytest.raises(LocalStackError, match=r"(?s)Served ended with exit code 3, .*  one\n  bye\n"):
        parts.wait(20)
    with pytest.raises(LocalStackError, match="Served ended"):  # and so does who comes later
        parts.check()


def test_who_waits_a_while_for_what_lives_goes_on(under: Guard) -> None:
    parts = _parts(under, "sleep 60")
    parts.wait(0.05)
    with parts.blamed():
        parts.check()


def test_what_goes_wrong_because_of_an_end_is_told_as_that(under: Guard) -> None:
    parts = _parts(under, "exit 3")
    with pytest.raises(LocalStackError):
        parts.wait(20)
    with pytest.raises(LocalStackError, match="Served ended") as told, parts.blamed():
        raise ConnectionError("nobody answers")
    assert isinstance(told.value.__cause__, ConnectionError)


def test_what_goes_wrong_otherwise_stays_what_it_is(under: Guard) -> None:
    parts = _parts(under, "sleep 60")
    with pytest.raises(ZeroDivisionError), parts.blamed():
        raise ZeroDivisionError


def test_programs_run_one_after_the_other_and_tell_their_codes(under: Guard) -> None:
    log = under.folder / "log"
    codes = [
        under.run(Program(argv=[SH, "-c", script], env={}, folder=under.folder, log=log))
        for script in ("echo a; exit 0", "echo b; exit 7", "kill -9 $$")
    ]
    assert [0, 7, 137] == codes
    assert "a\nb\n" == log.read_text()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    nowhere = tmp_path / "none"
    with pytest.raises(LocalStackError, match=f"{nowhere}: No such file"), guard("tu-", str(nowhere)):
        pass
