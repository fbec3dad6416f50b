"""Options of a request, and how those that name parameters and keys are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from trueup.errors import RequestError, UsageError

MOST_FILE_BYTES = 2**20

# What says which partitions are meant, wherever a request is made.
Start = Annotated[str | None, typer.Option("--from", help="Where the window begins; included.")]
End = Annotated[str | None, typer.Option("--to", help="Where the window ends; not included.")]
Param = Annotated[list[str] | None, typer.Option("--param", help="A parameter, as name=value.")]
Keys = Annotated[str | None, typer.Option(help="Partitions, as a,b,c or @FILE with one a line.")]


def typed_params(schema: Mapping[str, Any], options: list[str]) -> dict[str, Any]:
    """The parameters of `--param name=value` options, as a job's schema types them."""
    from trueup.planning.params import read_param

    params: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals or not name:
            raise RequestError(
                f"{option!r} is not a parameter.", remedy="Write it as name=value.", field="--param"
            )
        if name in params:
            raise RequestError(f"{name} is given twice.", remedy="Give it once.", field="--param")
        params[name] = read_param(schema, name, text)
    return params


def read_keys(option: str) -> list[str]:
    """The keys of a `--keys` option: `a,b,c`, or `@FILE` with one key a line."""
    if not option.startswith("@"):
        return [key for key in option.split(",") if key]
    path = Path(option[1:])
    try:
        with path.open("rb") as file:
            data = file.read(MOST_FILE_BYTES + 1)
        lines = data.decode("utf-8").splitlines()
    except OSError as error:
        raise _unread(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise _unread(path, "it is no text in UTF-8") from error
    except ValueError as error:
        raise _unread(path, str(error)) from error
    if len(data) > MOST_FILE_BYTES:
        raise _unread(path, f"it is larger than {MOST_FILE_BYTES:,} bytes")
    return [line.strip() for line in lines if line.strip()]


def _unread(path: Path, why: str) -> UsageError:
    return UsageError(f"--keys: {path} cannot be read: {why}.", remedy="Give a text file, one key a line.")
