"""What errors and records say of themselves, as text that is short enough and that every store can hold."""

from __future__ import annotations

from collections.abc import Callable

from trueup.model.base import cut
from trueup.model.result import LONGEST_MESSAGE, LONGEST_RECORD
from trueup.texts import storable


def told(error: BaseException, most: int = LONGEST_MESSAGE) -> str:
    """The error's text, or its beginning."""
    return cut(_said(str, error, "its text cannot be had"), most)


def describe(record: object) -> str:
    """A record as an error names it."""
    return cut(_said(repr, record, f"a {type(record).__name__} whose repr cannot be had"), LONGEST_RECORD)


def _said(say: Callable[[object], str], thing: object, instead: str) -> str:
    """What a thing says of itself. Errors and records are the author's, and so may raise when asked."""
    try:
        text = say(thing)
    except Exception as worse:
        text = f"{instead} ({type(worse).__name__})"
    return storable(text)
