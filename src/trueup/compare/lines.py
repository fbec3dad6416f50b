"""The canonical form of a row: one line of bytes, in the text form of PostgreSQL's COPY.

Fields are separated by tabs; backslash, tab, newline and four more are escaped by a backslash, so that a line
is a row and nothing else. A backslash that escapes nothing marks what is no value: NULL, absent, unreadable.
So these three, the empty text and the texts `\\N` and `NULL` are all different bytes.
"""

from __future__ import annotations

import re

__all__ = [
    "ABSENT",
    "NULL",
    "SPECIAL",
    "UNREADABLE",
    "escape",
    "field_text",
    "is_unreadable",
    "unescape",
    "unreadable",
]

NULL = rb"\N"
ABSENT = rb"\A"
UNREADABLE = rb"\?"
"""Before the text of a value that is not of the declared type."""

_LETTERS = {8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 92: b"\\"}
SPECIAL = bytes(_LETTERS)
"""The bytes that are escaped in a value."""

_SPECIAL = re.compile(b"[" + re.escape(SPECIAL) + b"]")
_ESCAPED = re.compile(rb"\\([btnvfr\\])")
_BYTES = {letter: bytes([code]) for code, letter in _LETTERS.items()}
_SHOWN = 200


def escape(value: bytes) -> bytes:
    """A value as a field."""
    if _SPECIAL.search(value) is None:
        return value
    return _SPECIAL.sub(lambda match: b"\\" + _LETTERS[match.group()[0]], value)


def unescape(field: bytes) -> bytes:
    """The value of a field that is one."""
    if b"\\" not in field:
        return field
    return _ESCAPED.sub(lambda match: _BYTES[match.group(1)], field)


def unreadable(value: object) -> bytes:
    """The field of a value that is not of its type: its text, cut short."""
    try:
        text = str(value)
    except (ValueError, RecursionError):  # an integer of more digits, or a document deeper, than Python shows
        text = f"a value of type {type(value).__name__} that is too large to show"
    return UNREADABLE + escape(text[:_SHOWN].encode("utf-8", "backslashreplace"))


def is_unreadable(line: bytes) -> bool:
    """Whether a line, or some lines, hold a field that could not be read."""
    # In nearly all lines the bytes are not there at all, and that is a search at the speed of memory.
    return UNREADABLE in line and re.search(rb"(?:^|[\t\n])\\\?", line) is not None


def field_text(field: bytes) -> str | None:
    """A field for people: None for NULL, its text otherwise, `(absent)` and `(unreadable: …)` named."""
    if field == NULL:
        return None
    if field == ABSENT:
        return "(absent)"
    if field.startswith(UNREADABLE):
        return f"(unreadable: {unescape(field[2:]).decode('utf-8', 'backslashreplace')})"
    return unescape(field).decode("utf-8", "backslashreplace")
