"""YAML read so that every value keeps its line, and the language's traps are refused instead of sprung.

Only `true`/`false` are booleans, dates stay text, and numbers that YAML readers disagree about are refused:
`yes`, `on` and `2024-01-01` mean what they look like. Anchors, tags and merge keys are refused too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]


@dataclass(frozen=True, order=True)
class Problem:
    """What is wrong at a line (from 1), in which field, and what to do."""

    line: int
    path: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        return f"{place}{self.what} {self.remedy}".strip()


@dataclass
class Document:
    """Plain data, the line of every value by its path, and the problems met on the way."""

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """The line of a value or, where there is none, of what it would stand in."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def add(self, path: Path, what: str, remedy: str = "") -> None:
        """Note a problem with the value at a path."""
        self.problems.append(Problem(self.line(path), dotted(path), what, remedy))


def dotted(path: Path) -> str:
    """A path as it is written in messages: `abort.0.unit`."""
    return ".".join(map(str, path))


class _Loader(yaml.SafeLoader):
    """A loader that resolves like YAML 1.2 and makes nodes only."""


_Loader.yaml_implicit_resolvers = {}  # `_plain` resolves scalars, and SafeLoader keeps its own


_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")
_BOOL = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_INT = re.compile(r"^[-+]?[0-9]+$")
_FLOAT = re.compile(
    r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"
    r"|^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$"
)
_AMBIGUOUS = re.compile(
    r"^[-+]?(?:0[0-9_]+|0o[0-7]+|0x[0-9a-fA-F_]+|0b[01_]+|[0-9]+_[0-9_]*|[0-9]+(?::[0-5]?[0-9])+)$"
)
_TAGS = {"!", *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq"))}
_OLD_BOOL = re.compile(r"^(?:yes|no|on|off)$", re.IGNORECASE)


# Deeper and longer than anything that people write; readers give up soon after, and in worse words.
DEEPEST = 50
MOST_DIGITS = 40


def read_yaml(text: str) -> Document:
    """The document in a text. Its `problems` say what could not be read; `data` is None if nothing could."""
    document = Document()
    try:
        node = _Loader(text).get_single_node()
        if node is None:
            document.problems.append(Problem(1, "", "the file is empty.", "Write something into it."))
        else:
            document.data = _value(node, (), document, set())
    except yaml.YAMLError as error:
        document.problems.append(_unreadable(error))
    except RecursionError:
        document.problems.append(Problem(1, "", "this is nested too deeply to be read.", "Make it flatter."))
    return document


def _unreadable(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    remedy = "Indent with spaces." if "\\t" in str(what) else "Check quotes, colons and indentation here."
    return Problem(mark.line + 1 if mark else 1, "", f"this is not YAML: {what}.", remedy)


def _value(node: yaml.Node, path: Path, document: Document, seen: set[int]) -> Any:
    document.lines.setdefault(path, node.start_mark.line + 1)
    if id(node) in seen:
        document.add(path, "an alias (`*name`) stands here.", "Write the value out.")
        return AMBIGUOUS
    seen.add(id(node))
    if node.tag not in _TAGS:
        document.add(path, f"the tag {node.tag} is not read.", "Remove it.")
        return AMBIGUOUS
    if len(path) > DEEPEST:
        document.add(path[:3], f"this is nested more than {DEEPEST} levels deep.", "Make it flatter.")
        return AMBIGUOUS
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document, seen)
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*path, index), document, seen) for index, child in enumerate(node.value)]
    return _scalar(node, path, document)


def _scalar(node: yaml.Node, path: Path, document: Document) -> Any:
    text = str(node.value)
    if not _is_unicode(text):
        document.add(path, f"{text!r} holds half of a surrogate pair.", "Write the character itself.")
        return AMBIGUOUS
    quoted = getattr(node, "style", None) is not None
    return text if quoted else _plain(text, path, document)


def _is_unicode(text: str) -> bool:
    """Whether it can be written: an escape such as \\ud800 is half of a character, which nothing holds."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _mapping(node: yaml.MappingNode, path: Path, document: Document, seen: set[int]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _key(key_node, path, document)
        if key is None:
            continue
        here = (*path, key)
        if key in made:
            first = document.lines[here]
            line = key_node.start_mark.line + 1
            document.problems.append(
                Problem(line, dotted(here), f"this key is here twice; first in line {first}.", "Remove one.")
            )
            continue
        document.lines[here] = key_node.start_mark.line + 1
        made[key] = _value(value_node, here, document, seen)
    return made


def _key(node: yaml.Node, path: Path, document: Document) -> str | None:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode) or not _is_unicode(str(node.value)):
        document.problems.append(
            Problem(line, dotted(path), "a key must be one word.", "Quote braces and dashes.")
        )
        return None
    if node.value == "<<" and node.style is None:
        document.problems.append(
            Problem(line, dotted(path), "merge keys (`<<`) are not read.", "Write it out.")
        )
        return None
    return str(node.value)


def _plain(text: str, path: Path, document: Document) -> Any:
    if _NULL.match(text):
        return None
    if _BOOL.match(text):
        return text.lower() == "true"
    if _AMBIGUOUS.match(text):
        document.add(
            path, f"YAML readers disagree about what {text} is.", f'Write a plain number, or "{text}".'
        )
        return AMBIGUOUS
    if _INT.match(text) and len(text) <= MOST_DIGITS:
        return int(text)
    if _INT.match(text):
        document.add(path, f"{text[:20]}... is not a number to work with.", "Give a smaller one.")
        return AMBIGUOUS
    if _FLOAT.match(text):
        number = float(text) if text[-1].isdigit() or text[-1] == "." else math.inf
        if math.isfinite(number):
            return number
        document.add(path, f"{text} is not a number to work with.", "Give a finite one.")
        return AMBIGUOUS
    return text


class _Ambiguous:
    """Stands for a value that was refused already, so that nothing more is said about it."""


AMBIGUOUS = _Ambiguous()


def refused_paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where values stand that were refused while reading."""
    if value is AMBIGUOUS:
        yield path
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from refused_paths(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from refused_paths(part, (*path, index))


def is_old_boolean(value: Any) -> bool:
    """Whether a text is a word that older YAML reads as true or false: yes, no, on, off."""
    return isinstance(value, str) and bool(_OLD_BOOL.match(value))
