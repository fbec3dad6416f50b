"""A word at a gate: what is being decided is shown, and its hash has to be named."""

from __future__ import annotations

import sys
from typing import Annotated, Any
from urllib.parse import quote

import typer

from trueup.cli.calling import Client, run_path
from trueup.cli.gates import SHOWN, lines
from trueup.cli.output import tell
from trueup.cli.patience import AT_ONCE, patiently
from trueup.errors import UsageError

LEAST = 6
"""Fewer characters of a hash would be typed by chance."""

GateName = Annotated[str, typer.Argument(help="The gate's name, such as apply.", metavar="GATE")]
Sha = Annotated[
    str | None,
    typer.Option("--sha", help=f"The first {LEAST} characters or more of the hash that you looked at."),
]


def decide(
    there: Client, run: str, name: str, verb: str, sha: str | None, comment: str, *, quiet: bool
) -> Any:
    """Show the gate, have its hash named, and give the word. UsageError where it is named wrongly."""
    gate = _gate(there, run, name)
    if not quiet:
        tell("\n".join(lines(gate)))
    named_hash(run, "gates", gate["sha256"], sha, verb)
    path = run_path(run, "gates", quote(name, safe=""), verb)
    # The whole hash of what was shown: had it changed since, the word would be refused. The same word of the
    # same person again changes nothing, so an answer that was lost is asked for again.
    word = {"sha256": gate["sha256"], "comment": comment}
    return patiently(lambda: there.post(path, word), AT_ONCE)


def named_hash(run: str, shown_by: str, digest: str, sha: str | None, verb: str) -> None:
    """Have the hash of what was shown named, or typed. Raises UsageError where it is named wrongly."""
    named = sha if sha is not None else _typed(verb)
    if len(named) < LEAST or not digest.startswith(named.lower()):
        what = "what waits" if shown_by == "gates" else f"the {shown_by}"
        raise UsageError(
            f"{named!r} is not how the hash of {what} begins: it was not looked at, or has changed.",
            remedy=f"Look at it with `trueup {shown_by} {run}`, and give {LEAST} characters of its hash "
            "or more.",
        )


def _gate(there: Client, run: str, name: str) -> Any:
    gates = {gate["name"]: gate for gate in there.get(run_path(run, "gates"))["gates"]}
    if name not in gates:
        has = ", ".join(gates) or "none yet"
        raise UsageError(f"{run} has no gate {name}.", remedy=f"It has {has}.")
    return gates[name]


def _typed(verb: str) -> str:
    if not sys.stdin.isatty():
        raise UsageError(
            "The hash was not named, and nobody is here to type it.",
            remedy="Give its first characters with --sha.",
        )
    return str(typer.prompt(f"The first {SHOWN} characters of its hash, to {verb}")).strip()
