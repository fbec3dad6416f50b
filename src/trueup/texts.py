"""Texts that UTF-8 can carry: what authors and their data give may have halves of surrogate pairs in it."""

from __future__ import annotations

import json


def storable(text: str) -> str:
    """Text without halves of surrogate pairs, which `errors="surrogateescape"` makes of broken bytes."""
    return text.encode(errors="backslashreplace").decode()


def in_json(document: object) -> str:
    """A document in JSON, for people: each character as it is, but those escaped that UTF-8 cannot carry."""
    # A half of a pair lies within quotes, and there Python's escape for it is JSON's.
    return storable(json.dumps(document, ensure_ascii=False))


def printable(text: str) -> str:
    """Text that came from somewhere else, as a terminal may show it: control characters are escaped."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def printable_lines(text: str) -> str:
    """The same of a text that may have lines and tabs, which stay."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))
