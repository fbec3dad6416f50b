"""Many requests to the store at once: in order, few at a time, and few answers held."""

from __future__ import annotations

import threading

import pytest

from trueup.artifacts.together import together
from trueup.errors import StoreUnavailable


def test_answers_come_in_the_order_of_what_was_asked() -> None:
    assert [2 * number for number in range(100)] == list(together(lambda one: 2 * one, range(100), 7))
    assert [] == list(together(lambda one: one, []))


def test_so_many_are_asked_at_once_and_no_more() -> None:
    together_now = threading.Barrier(4)  # breaks where fewer than four wait at it

    def ask(number: int) -> int:
        together_now.wait(timeout=20)
        return number

    assert list(range(12)) == list(together(ask, range(12), 4))


def test_no_more_is_asked_than_is_held() -> None:
    wanted = iter(range(1000))
    answers = together(lambda one: one, wanted, 5)
    assert 0 == next(answers)
    assert 5 == next(wanted)


def test_the_first_error_is_raised() -> None:
    def ask(number: int) -> int:
        if number in (7, 9):
            raise StoreUnavailable(f"no {number}")
        return number

    answers = together(ask, range(1000), 5)
    with pytest.raises(StoreUnavailable, match="no 7"):
        list(answers)
