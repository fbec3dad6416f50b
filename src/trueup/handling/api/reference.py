"""docs/api.md, made from the routes and the kinds of problems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trueup.handling.api.openapi import document
from trueup.handling.api.problems import KINDS

FILE = Path(__file__).parents[4] / "docs" / "api.md"

_INTRO = """\
# The API

An HTTP API with IAM authorisation starts runs and shows them.
`src/trueup/handling/api/openapi.json` describes it for programs (OpenAPI 3.1), and [the command line](cli.md) is made on top of it.

Every call is signed with AWS Signature Version 4 for the service `execute-api`; the caller needs the permission `execute-api:Invoke`.
Who asks is who signed: the identity comes from the signature and is on the run's trail, and a body that names somebody is refused.

`POST /runs` answers 202 at once, with the run and where to look; the same `requestId` again gives the run that it started.
It has to ask for the same: another job, window, parameter, canary, sample or number of tasks under that id is refused, and names the run.
A list gives `next` where there may be more; give it back as `after`, unchanged.
A filtered page looks at 2,000 items at most, so that it may be short although more follows.
How a run stands (`GET /runs/{runId}`) costs a handful of reads and two for each running task, whatever the number of partitions.

What evidence there is comes in pages of at most 1,000 objects, each of which is checked as its page is asked for: `changed` is what of the page is not what it was, and `sha256` that of the whole manifest, the same on each.
The evidence itself comes in parts of 3 MiB in Base64, since a function answers 6 MB at most: `next` is the `offset` of the part behind, and whoever puts them together holds them against the digest.
Only what the manifest of a run names can be asked for, by its SHA-256; before-images among it hold values.

This page is made by `python -m trueup.handling.api`.
"""


def text() -> str:
    """The page as the routes have it now."""
    return "\n".join([_INTRO, *_routes(), *_problems()])


def _routes() -> Iterator[str]:
    yield "## Routes\n"
    yield "| call | does | parameters | answers |"
    yield "|---|---|---|---|"
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            told = [
                f"`{method.upper()} {path}`",
                operation["summary"],
                _asked(operation),
                _answered(operation),
            ]
            yield f"| {' | '.join(told)} |"
    yield ""


def _asked(operation: dict[str, Any]) -> str:
    query = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    names = [f"`{name}`" for name in query]
    return ", ".join([*names, f"body `{_name(body)}`"] if body else names)


def _answered(operation: dict[str, Any]) -> str:
    good = {status: one for status, one in operation["responses"].items() if status < "300"}
    return ", ".join(
        f"{status} `{_name(one['content']['application/json']['schema'])}`" for status, one in good.items()
    )


def _name(schema: dict[str, str]) -> str:
    return schema["$ref"].rpartition("/")[2]


def _problems() -> Iterator[str]:
    yield "## Problems\n"
    yield "Whatever goes wrong is a problem document (RFC 9457, `application/problem+json`)."
    yield "`detail` says what happened to which thing, `remedy` what to do now, and `field` which part of the request is wrong.\n"
    yield "| type | status | meaning |"
    yield "|---|---|---|"
    for kind in KINDS:
        yield f"| `urn:trueup:problem:{kind.name}` | {kind.status} | {kind.title} |"
    yield ""
    yield 'Calls that nobody signed are refused by API Gateway itself, with 403 and `{"message":"Forbidden"}`.'
    yield ""
