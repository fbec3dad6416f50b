"""The second half of the demo: when it counts as good, and how the second person's word is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from trueup.aws.api import Reply
from trueup.errors import LocalStackError, StoreUnavailable
from trueup.local import demo, demo_reconcile
from trueup.local.demo_reconcile import Reconciling, is_good

CLASSES = {"missing": 8, "mismatched": 9, "extra": 8}
GOOD: dict[str, Any] = {
    "damaged": CLASSES,
    "drift": CLASSES,
    "repaired": 25,
    "verified": 25,
    "verdict": "REPAIRED",
    "tableRestored": True,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"drift": {**CLASSES, "extra": 9}},
        {"drift": {**CLASSES, "missing": 9, "mismatched": 8}},
        {"repaired": 24},
        {"verified": 24},
        {"verdict": "UNREPAIRED"},
        {"tableRestored": False},
    ],
)
def test_it_is_good_only_where_exactly_what_was_damaged_was_repaired(wrong: dict[str, Any]) -> None:
    assert is_good(GOOD)
    assert not is_good({**GOOD, **wrong})


@pytest.mark.parametrize("job", [{"status": "FAILED", "tableEqual": True}, {"status": "SUCCEEDED"}])
def test_where_the_first_half_went_wrong_nothing_is_damaged(job: dict[str, Any]) -> None:
    whole = {"status": "SUCCEEDED", "tableEqual": True}
    jobs = {"flights-summary": whole, "flights-rows": {"tableEqual": False, **job}}
    notes: list[str] = []
    nothing = cast(Any, None)
    assert demo._reconciled(nothing, notes.append, nothing, nothing, jobs) is None
    assert ["Not all went well, so nothing is damaged and reconciled."] == notes


def approve(monkeypatch: pytest.MonkeyPatch, *answers: Reply | Exception) -> list[str]:
    """What is noted when a gate is approved by an API that answers so."""
    left, notes = list(answers), []

    def call(*words: Any) -> Reply:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(demo_reconcile, "SignedApi", lambda *_: SimpleNamespace(call=call))
    monkeypatch.setattr(demo_reconcile, "keys_of", lambda *_: ("id", "secret"))
    parts = SimpleNamespace(wait=lambda seconds: None)
    up = cast(Any, SimpleNamespace(api="http://api", client=None, parts=parts))
    gate = SimpleNamespace(
        run_id="run-1", name="repair", sha256="ab" * 32, kind=SimpleNamespace(value="report")
    )
    nothing = cast(Any, None)
    Reconciling(up, notes.append, nothing, nothing)._approve(cast(Any, gate))
    assert [] == left
    return notes


def reply(status: int) -> Reply:
    return Reply(status, "application/json", b'{"detail": "why"}')


def test_a_word_is_given_again_while_the_api_is_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = approve(monkeypatch, reply(503), StoreUnavailable("nobody answers"), reply(500), reply(200))
    assert ["run-1: second-person approves report abababab (repair)."] == notes


@pytest.mark.parametrize("answers", [[reply(403)], [reply(500)] * 5])
def test_a_word_that_is_refused_is_told_with_what_was_answered(
    monkeypatch: pytest.MonkeyPatch, answers: list[Reply]
) -> None:
    with pytest.raises(LocalStackError, match=r"did not take the word of second-person: \d+ .*why"):
        approve(monkeypatch, *answers)


def test_an_api_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreUnavailable):
        approve(monkeypatch, *[StoreUnavailable("nobody answers")] * 5)
