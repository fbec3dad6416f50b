"""Errors as problem documents (RFC 9457), each with a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trueup.errors import (
    NotAnApprover,
    NotFound,
    OwnRequest,
    Refused,
    RequestError,
    StoreUnavailable,
    TrueupError,
    UsageError,
)
from trueup.model.base import Value


class Problem(Value):
    """What went wrong, and what to do now. `field` names the part of the request that is wrong."""

    type: str
    title: str
    status: int
    detail: str
    remedy: str
    field: str | None = None


class Forbidden(Value):
    """What API Gateway itself answers where nobody signed: no problem document, since it asks nobody."""

    message: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: its name in `urn:trueup:problem:<name>`, its status, what it means."""

    name: str
    status: int
    title: str

    def problem(self, detail: str, remedy: str, field: str | None = None) -> Problem:
        """A problem of this kind."""
        return Problem(
            type=f"urn:trueup:problem:{self.name}",
            title=self.title,
            status=self.status,
            detail=detail,
            remedy=remedy,
            field=field or None,
        )


WRONG = Kind("wrong-request", 400, "The request is wrong; nothing was created.")
UNSIGNED = Kind("unsigned", 403, "The call is not signed by anybody.")
FORBIDDEN = Kind("forbidden", 403, "Somebody else has to decide this.")
NOT_FOUND = Kind("not-found", 404, "There is no such thing.")
NO_ROUTE = Kind("no-route", 404, "There is no such path.")
NO_METHOD = Kind("no-method", 405, "The path does not take this method.")
REFUSED = Kind("refused", 409, "It cannot be done as things stand.")
FAULT = Kind("fault", 500, "The API failed; this is a bug.")
UNAVAILABLE = Kind("unavailable", 503, "DynamoDB, S3 or Step Functions did not answer.")

KINDS = (WRONG, UNSIGNED, FORBIDDEN, NOT_FOUND, NO_ROUTE, NO_METHOD, REFUSED, FAULT, UNAVAILABLE)

# The first that fits, from the special to the general.
_OF: Mapping[type[TrueupError], Kind] = {
    NotFound: NOT_FOUND,
    UsageError: WRONG,
    NotAnApprover: FORBIDDEN,
    OwnRequest: FORBIDDEN,
    Refused: REFUSED,
    StoreUnavailable: UNAVAILABLE,
}


def problem_of(error: TrueupError) -> Problem:
    """The problem that an error is told as. An error of no kind above is a fault."""
    kind = next((kind for family, kind in _OF.items() if isinstance(error, family)), FAULT)
    field = error.field if isinstance(error, RequestError) else None
    return kind.problem(error.what, error.remedy or "Ask again, or look at the logs of the API.", field)
