"""`python -m trueup.cli.reference` writes docs/cli.md from the commands themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from trueup.cli import COMMANDS, app
from trueup.cli.troubles import EXITS

FILE = Path(__file__).parents[3] / "docs" / "cli.md"

_INTRO = """\
# The command line

`trueup` speaks to the API of a deployed stack, and never behind its back: what it does is what [the API](api.md) does, and the trail names whoever signed the call.
Set `TRUEUP_API` to the stack's output `Api`, and AWS credentials as for any other tool.
`up`, `demo`, `new`, `validate` and `estimate` need no stack.

With `--json` a command prints one JSON document on one line instead of text.
What is wrong is one message on standard error, with what to do; tracebacks are shown with `TRUEUP_DEBUG=1` only.
An API that does not answer is asked again, for 10 seconds, and by `--watch` and `--wait` for 5 minutes once it has answered; after the third failure that is said on standard error.
What changes something is asked again only where asking twice changes nothing more: `start`, `approve` and `reject`.
`trueup --install-completion` teaches the shell the commands.

| exit | meaning |
|---|---|
{exits}

[What went wrong](errors.md) lists every error, and what to do about it.
This page is made by `python -m trueup.cli.reference`.
"""


def text() -> str:
    """The page as the commands have it now."""
    group: Any = typer.main.get_command(app)
    exits = "\n".join(f"| {code} | {meaning} |" for code, (meaning, _) in EXITS.items())
    parts = [_INTRO.format(exits=exits)]
    for name, module in COMMANDS.items():
        parts.append("\n".join(_command(name, group.commands[name], module.EXAMPLE)))
    return "\n".join(parts)


def _command(name: str, command: Any, example: str) -> Iterator[str]:
    yield f"## trueup {name}\n"
    yield from _sentences(command.help)
    yield ""
    yield "```"
    yield example
    yield "```"
    rows = [_row(one) for one in command.params if not getattr(one, "hidden", False)]
    yield ""
    yield "| option | meaning |"
    yield "|---|---|"
    yield from rows
    yield ""


def _sentences(help_text: str | None) -> Iterator[str]:
    """One a line, as the pages are written."""
    for paragraph in (help_text or "").strip().split("\n\n"):
        yield " ".join(paragraph.split()).replace(". ", ".\n")


def _row(one: Any) -> str:
    names = one.opts if one.param_type_name == "option" else [(one.metavar or one.name).upper()]
    shown = " ".join(f"`{name}`" for name in sorted(names))
    default = one.default
    known = default is not None and default is not False and default != "" and not callable(default)
    more = f" Default: {default:g}." if known and isinstance(default, int | float) else ""
    return f"| {shown} | {(one.help or '').replace('|', ' or ')}{more} |"


def main() -> None:
    """Write the page, and name it."""
    FILE.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{FILE}\n")


if __name__ == "__main__":
    main()
