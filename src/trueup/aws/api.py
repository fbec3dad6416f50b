"""The HTTP API as a caller sees it: every call signed with SigV4, by whom the AWS environment names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session

from trueup.errors import StoreUnavailable, UsageError

SERVICE = "execute-api"
_SECONDS = 35.0
"""A little more than API Gateway waits."""


def _checked(address: str) -> str:
    """The address, if a call can be sent there. Raises UsageError."""
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that is none
        good = False
    if not good or not address.isprintable() or " " in address:
        raise UsageError(f"{address} is no address of an API.", remedy="Give one like https://...")
    return address


@contextmanager
def _of_aws() -> Iterator[None]:
    """What the environment names and AWS's files do not have, as a mistake of the caller's."""
    try:
        yield
    except BotoCoreError as error:
        raise UsageError(
            f"The call cannot be signed: {str(error).rstrip('.')}.",
            remedy="Check AWS_PROFILE and the other AWS_ variables, or log in again.",
        ) from error


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    kind: str
    body: bytes


class SignedApi:
    """The API at an address. `keys` are access key id and secret of another caller than the environment's.

    `region` is where it is; without it, it is the environment's.

    Raises UsageError where the address is none, or the environment names what AWS's files do not have.
    """

    def __init__(self, address: str, keys: tuple[str, str] | None = None, region: str | None = None) -> None:
        self._address = _checked(address).rstrip("/")
        with _of_aws():
            session = botocore.session.get_session()
            self._credentials = Credentials(*keys) if keys else session.get_credentials()
            self._region = region or session.get_config_variable("region") or "us-east-1"
        self._http = URLLib3Session(timeout=_SECONDS)

    def call(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: Any = None,
        accept: str = "application/json",
    ) -> Reply:
        """One call. Raises UsageError where nobody can sign it, StoreUnavailable where nobody answers."""
        if self._credentials is None:
            raise UsageError(
                "There are no AWS credentials to sign the call with.",
                remedy="Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            )
        with _of_aws():
            request = self._signed(method, path, query, body, accept)
        try:
            reply = self._http.send(request.prepare())
        except BotoCoreError as error:
            raise StoreUnavailable(
                f"{self._address} does not answer: {error}.", remedy="Check TRUEUP_API and the network."
            ) from error
        return Reply(reply.status_code, reply.headers.get("content-type", ""), reply.content)

    def _signed(self, method: str, path: str, query: dict[str, str], body: Any, accept: str) -> AWSRequest:
        url = f"{self._address}{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": accept} | ({} if data is None else {"Content-Type": "application/json"})
        request = AWSRequest(method=method, url=url, data=data, headers=headers)
        SigV4Auth(self._credentials.get_frozen_credentials(), SERVICE, self._region).add_auth(request)
        return request
