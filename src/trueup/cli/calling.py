"""Calls of the API for commands: options that they share, pages put together, problems as errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli.answers import what_is_wrong
from trueup.cli.patience import AT_ONCE, patiently
from trueup.errors import StoreUnavailable, TrueupError, UsageError
from trueup.texts import printable, printable_lines

if TYPE_CHECKING:
    from trueup.aws.api import Reply

VARIABLE = "TRUEUP_API"
PERSON = "TRUEUP_AS"
ENDPOINT = "AWS_ENDPOINT_URL"

Address = Annotated[
    str | None, typer.Option("--api", envvar=VARIABLE, help="Where the API is.", show_envvar=True)
]
Person = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", envvar=PERSON, show_envvar=True, help="Who you are, on the local stack alone."
    ),
]
RunId = Annotated[str, typer.Argument(help="The run's id.", metavar="RUN")]
Limit = Annotated[int | None, typer.Option(min=1, help="Show so many at most; without it, all.")]

_PAGE = 500
_WRONG, _UNKNOWN, _MANY, _FAULT = 400, 404, 429, 500


class Client:
    """The API at an address, called by whom the AWS environment names, or on the local stack by a person."""

    def __init__(self, address: str | None, person: str | None = None) -> None:
        from trueup.aws.api import SignedApi

        if not address:
            raise UsageError(
                f"It is not known where the API is: {VARIABLE} is not set.",
                remedy="Set it to the stack's output Api, or give --api. "
                "`trueup up > stack.env` starts a stack here, and `. ./stack.env` in another shell sets it.",
            )
        self._api = SignedApi(address, _keys(person, address) if person else None)

    def get(self, path: str, *, patience: float = AT_ONCE, **query: object) -> Any:
        """The document at a path; parameters that are None are left out. Asked again for so many seconds."""
        return patiently(lambda: self._document("GET", path, query), patience)

    def post(self, path: str, body: Any) -> Any:
        """The document that a body is answered with. Asked once: whoever may ask twice does so."""
        return self._document("POST", path, {}, body)

    def text(self, path: str, accept: str) -> str:
        """What lies at a path, in that kind."""
        reply = patiently(lambda: _checked(self._api.call("GET", path, {}, accept=accept)), AT_ONCE)
        try:
            return reply.body.decode()
        except ValueError as error:
            raise _strange("bytes that are no text") from error

    def pages(self, path: str, entries: str, limit: int | None, **query: Any) -> Iterator[Any]:
        """The entries of a list, page by page."""
        after, left = None, limit
        while True:
            size = _PAGE if left is None else min(_PAGE, left)
            page = self.get(path, limit=size, after=after, **query)
            yield from page[entries]
            if after is not None and page["next"] == after:
                raise _strange("the same page again")
            after = page["next"]
            left = None if left is None else left - len(page[entries])
            if after is None or left == 0:
                return

    def _document(self, method: str, path: str, query: dict[str, Any], body: Any = None) -> Any:
        asked = {name: str(value) for name, value in query.items() if value is not None}
        reply = _checked(self._api.call(method, path, asked, body))
        document = _object(reply)
        if document is None:
            raise _strange("no JSON object")
        if wrong := what_is_wrong(method, path, reply.status, document):
            raise _strange(wrong)
        return document


class _Object(dict[str, Any]):
    """A JSON object that came from whatever is at the address: what it lacks is told as that."""

    def __missing__(self, name: str) -> Any:
        raise _strange(f"something without {name!r}")


def _object(reply: Reply) -> _Object | None:
    import json

    try:
        found = json.loads(reply.body, object_hook=_Object)
    except (ValueError, RecursionError):  # the latter of brackets without an end
        return None
    return found if isinstance(found, _Object) else None


def _strange(what: str) -> TrueupError:
    return TrueupError(
        f"The API answered {printable(what)}.", remedy=f"Check {VARIABLE}: it may be somebody else's address."
    )


def client(address: str | None, person: str | None = None) -> Client:
    """The API of a command, and who calls it. Raises UsageError where a person is named to AWS."""
    return Client(address or os.environ.get(VARIABLE), person or os.environ.get(PERSON))


def _keys(person: str, address: str) -> tuple[str, str]:
    from trueup.local.people import acting_as

    return acting_as(person, address, os.environ.get(ENDPOINT))


def run_path(run: str, *rest: str) -> str:
    """The path of a run, or of something of it. Raises UsageError where no run is named."""
    from urllib.parse import quote

    if not run:
        raise UsageError("RUN is empty.", remedy="Give a run's id; `trueup status` lists them.")
    return "/".join(["/runs", quote(run, safe=""), *rest])


def _checked(reply: Reply) -> Reply:
    """The reply, if it is a good one. Raises what its problem says."""
    if reply.status < _WRONG:
        return reply
    problem = _object(reply)
    if problem is None or not {"detail", "remedy"} <= problem.keys():
        kind = StoreUnavailable if _passes(reply.status) else TrueupError
        raise kind(
            f"The API answered {reply.status}: {printable(reply.body.decode(errors='replace')[:200])}.",
            remedy="Check TRUEUP_API, and that your role may call it (execute-api:Invoke).",
        )
    field = f"{problem['field']}: " if problem.get("field") else ""
    kinds = {_WRONG: UsageError, _UNKNOWN: UsageError}
    kind = StoreUnavailable if _passes(reply.status) else kinds.get(reply.status, TrueupError)
    detail, remedy = (printable_lines(str(problem[name])) for name in ("detail", "remedy"))
    raise kind(printable(field) + detail, remedy=remedy)


def _passes(status: int) -> bool:
    """Whether it may go better the next time: too many calls at once, or something is out of order."""
    return status == _MANY or status >= _FAULT
