"""What errors and records say of themselves, as text that is short enough and that every store can hold."""

from __future__ import annotations

from trueup.model.base import cut
from trueup.model.result import LONGEST_MESSAGE, LONGEST_RECORD


def told(error: BaseException, most: int = LONGEST_MESSAGE) -> str:
    """The error's text, or its beginning. Authors raise errors of their own, whose `__str__` may raise."""
    try:
        text = str(error)
    except Exception as worse:
        text = f"its text cannot be had ({type(worse).__name__})"
    return cut(storable(text), most)


def describe(record: object) -> str:
    """A record as an error names it. Records are the author's too, and so is their `__repr__`."""
    try:
        text = repr(record)
    except Exception as worse:
        text = f"<{type(record).__name__} whose repr raises {type(worse).__name__}>"
    return cut(storable(text), LONGEST_RECORD)


def storable(text: str) -> str:
    """Text without halves of surrogate pairs, which `errors="surrogateescape"` makes of broken bytes."""
    return text.encode(errors="backslashreplace").decode()
