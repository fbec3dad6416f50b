"""The command line: one module a command, each with a function `command`. Their imports stay lazy."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from trueup.cli import (
    approve,
    audit,
    demo,
    estimate,
    evidence,
    gates,
    jobs,
    known,
    logs,
    new,
    partitions,
    reject,
    rejects,
    report,
    sign,
    start,
    status,
    up,
    validate,
    withdraw,
)
from trueup.cli.exits import DONE, FAILED, INTERRUPTED, USAGE, of_error
from trueup.errors import TrueupError, UsageError

app = typer.Typer(
    name="trueup",
    help="Partitioned backfills on AWS that can be stopped, resumed and trusted.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# One line a command, in the order in which a person needs them.
COMMANDS: Mapping[str, Any] = {
    "up": up,
    "demo": demo,
    "new": new,
    "validate": validate,
    "estimate": estimate,
    "jobs": jobs,
    "start": start,
    "status": status,
    "gates": gates,
    "approve": approve,
    "reject": reject,
    "partitions": partitions,
    "rejects": rejects,
    "logs": logs,
    "report": report,
    "sign": sign,
    "known": known,
    "withdraw": withdraw,
    "evidence": evidence,
    "audit": audit,
}
for _name, _module in COMMANDS.items():
    app.command(_name, epilog=f"Example: {_module.EXAMPLE}")(_module.command)


def _tell_version(wanted: bool) -> None:
    if wanted:
        print(f"trueup {version()}")
        raise typer.Exit(DONE)


def version() -> str:
    """The version that is installed."""
    from importlib.metadata import version

    return version("trueup")


@app.callback()
def _options(
    told: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Say the version and leave."),
    ] = False,
) -> None:
    """Partitioned backfills on AWS that can be stopped, resumed and trusted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and answer its exit code. Tracebacks are shown with TRUEUP_DEBUG=1 only."""
    if "stdout" in _hold_closed():
        return _say(f"Standard output is closed: nothing was done. Send it to a file or {os.devnull}.", USAGE)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # data may have halves of characters in it
    code = _run(sys.argv[1:] if arguments is None else list(arguments))
    try:
        sys.stdout.flush()
    except OSError as error:
        return _unwritten(error)
    return code


def _hold_closed() -> set[str]:
    """The streams that are closed, each opened to nowhere in their order, so that it gets its own number.

    The next file that is opened would get it instead: servers that are started would write into a connection.
    """
    closed = set()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end
            closed.add(name)
    return closed


def _run(words: list[str]) -> int:
    try:
        _check_text(words)
        app(args=words, prog_name="trueup")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else DONE
    except KeyboardInterrupt:
        return _say("Interrupted.", INTERRUPTED)
    except TrueupError as error:
        return _say(str(error), of_error(error))
    except OSError as error:
        # Of a file it would say which.
        no_room = error.errno == errno.ENOSPC and error.filename is None
        return _unwritten(error) if no_room else _say(_unexpected(error), FAILED)
    except Exception as error:
        return _say(_unexpected(error), FAILED)
    return DONE


def _unwritten(error: OSError) -> int:
    """Say that what is printed finds no room. A reader that has left, such as `head`, needs no words."""
    # The interpreter flushes once more when it leaves, and would tell the same error in its own words.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return FAILED
    what = f"What was to be written cannot be: {error.strerror}."
    return _say(f"{what} What was asked for may have been done: look before you ask again.", FAILED)


def _check_text(words: list[str]) -> None:
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:  # Bytes that are no text reach us as half of a surrogate pair.
            raise UsageError(f"{word!r} is not text in UTF-8.", remedy="Write it in UTF-8.") from error


def _say(message: str, code: int) -> int:
    if os.environ.get("TRUEUP_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    print(message, file=sys.stderr)
    return code


def _unexpected(error: Exception) -> str:
    first_line = str(error).partition("\n")[0]
    return (
        f"trueup met an error that it did not expect ({type(error).__name__}: {first_line}). "
        f"That is a fault of trueup {version()}: run the command again with TRUEUP_DEBUG=1, and report "
        "what it prints together with the command and this version."
    )
