"""Texts against patterns, in a bounded number of steps: one rule must not hold up every other execution."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import comb

from trueup.local.stepfunctions.errors import EvaluationError

Test = Callable[[str], bool]

MAX_STEPS = 10_000_000
"""Ways to divide a text among the repeats of a regular expression: a fraction of a second."""

_WILDCARD_PARTS = re.compile(r"\\[*\\]|\*|[^*\\]+|\\")
_TOKENS = re.compile(
    r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|(?P<open>\((?:\?:)?)|(?P<close>\))|(?P<or>\|)"
    r"|(?P<repeat>[*+?]|\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\})[?+]?|.",
    re.DOTALL,
)


def wildcards(pattern: str) -> Test:
    r"""The test of StringMatches: `*` stands for any text, `\*` for a star and `\\` for a backslash.

    Each piece between two stars is taken where it is found first: there is nothing to go back to.
    """
    pieces = _pieces(pattern)
    first, middle, last = pieces[0], pieces[1:-1], pieces[-1]

    def test(text: str) -> bool:
        if len(pieces) == 1:
            return text == first
        end = len(text) - len(last)
        position = len(first)
        if position > end or not text.startswith(first) or not text.endswith(last):
            return False
        for piece in middle:
            found = text.find(piece, position, end)
            if found < 0:
                return False
            position = found + len(piece)
        return True

    return test


def has_open_escape(pattern: str) -> bool:
    """Whether a backslash in the pattern of StringMatches escapes nothing."""
    return "\\" in _WILDCARD_PARTS.findall(pattern)


def _pieces(pattern: str) -> list[str]:
    """The texts before, between and after the stars."""
    pieces = [""]
    for part in _WILDCARD_PARTS.findall(pattern):
        if part == "*":
            pieces.append("")
        else:
            pieces[-1] += part[1:] if part in (r"\*", r"\\") else part
    return pieces


def regular(pattern: str, flags: int) -> Test:
    """The test of a filter's `=~`, which the whole text has to match.

    Raises ValueError for what is no regular expression, or one whose steps nobody can bound. The test raises
    EvaluationError where the text is too long for how much of the pattern repeats.
    """
    try:
        compiled = re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"/{pattern}/ is not a regular expression: {error}") from error
    unbounded, choices = _repeats(pattern)

    def test(text: str) -> bool:
        if comb(len(text) + unbounded, unbounded) * choices > MAX_STEPS:
            raise EvaluationError(
                f"/{pattern}/ repeats too much for a text of {len(text)} characters: "
                f"it may take more than {MAX_STEPS} steps"
            )
        return compiled.fullmatch(text) is not None

    return test


def _repeats(pattern: str) -> tuple[int, int]:
    """How many parts repeat without end, and in how many ways all others can be taken.

    Raises ValueError for repeats and alternatives within what repeats: their steps double with every
    character; and for groups that only look, or set flags, which this does not count.
    """
    unbounded, choices = 0, 1
    groups, closed = [False], False
    for token in _TOKENS.finditer(pattern):
        if token["open"]:
            if pattern.startswith("?", token.end()):
                raise ValueError(f"/{pattern}/: of groups that begin with (? only (?: is implemented")
            groups.append(False)
        elif token["or"]:
            choices, groups[-1] = choices * 2, True
        elif token["repeat"]:
            if closed:
                raise ValueError(f"/{pattern}/ repeats what has repeats or alternatives in it")
            ways = _ways(token)
            unbounded, choices = unbounded + (ways is None), choices * (ways or 1)
            groups[-1] = True
        closed = bool(token["close"]) and groups[-1]
        if token["close"] and len(groups) > 1:
            inner = groups.pop()
            groups[-1] = groups[-1] or inner
    return unbounded, choices


def _ways(repeat: re.Match[str]) -> int | None:
    """How many lengths a repeat can have; None for any."""
    if repeat["repeat"] in "*+":
        return None
    if repeat["repeat"] == "?":
        return 2
    if not repeat["comma"]:
        return 1
    return int(repeat["most"]) - int(repeat["least"] or 0) + 1 if repeat["most"] else None
