"""People of the local stack: each is an IAM user there, and who signs a call is who the trail names.

On AWS the caller is whose the credentials are, and nobody can be named instead: `acting_as` refuses there.
A person's key is kept as a secret of the stack, so that every command of theirs signs with the same one.
"""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trueup.errors import LocalStackError, UsageError
from trueup.local.aws import Connect, client

ACCOUNT = "000000000000"
"""The emulators'; no account of AWS has this number."""
SECRETS = "trueup/people/"
_NAME = re.compile(r"[A-Za-z0-9+=,.@_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9+=,.@_-]")

Keys = tuple[str, str]
"""Access key id and secret access key."""


def local_user() -> str:
    """Who uses this machine, as IAM can name them."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        name = ""
    return _NOT_IN_NAMES.sub("-", name)[:64] or "local"


def acting_as(name: str, api: str, endpoint: str | None) -> Keys:
    """What a person signs calls of an API with; they become a user of the stack where they are not.

    `endpoint` is where the tools of AWS are pointed (AWS_ENDPOINT_URL).
    Raises UsageError where the API is not on a local stack, or the name is none; LocalStackError where the
    stack does not answer.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} cannot be a person's name.", remedy="Take letters, digits and + = , . @ _ -"
        )
    if endpoint is None or _origin(endpoint) != _origin(api):
        raise _not_local(api)
    once = Config(retries={"total_max_attempts": 2})
    try:
        found = client("sts", endpoint, config=once).get_caller_identity()
        if found["Account"] != ACCOUNT:
            raise _not_local(api)
        return keys_of(name, lambda service: client(service, endpoint))
    except ClientError as error:
        raise _not_local(api) from error
    except BotoCoreError as error:
        raise LocalStackError(
            f"The local stack does not answer: {error}.",
            remedy="Start it with `trueup up`, and paste the lines that it prints.",
        ) from error


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _not_local(api: str) -> UsageError:
    return UsageError(
        f"{api} is not on a local stack, and on AWS the caller is whose the credentials are.",
        remedy="Leave --as and TRUEUP_AS out; another person has other credentials: AWS_PROFILE.",
    )


def keys_of(name: str, connect: Connect) -> Keys:
    """A person's keys, made with the user at the first time."""
    vault = connect("secretsmanager")
    kept = _kept(vault, name)
    if kept is None:
        made = _made(connect("iam"), name)
        try:
            vault.create_secret(Name=SECRETS + name, SecretString=json.dumps(made))
        except vault.exceptions.ResourceExistsException:
            kept = _kept(vault, name)  # another command of theirs was first
        kept = kept or made
    return kept["id"], kept["secret"]


def _kept(vault: Any, name: str) -> Mapping[str, str] | None:
    try:
        found: Mapping[str, str] = json.loads(vault.get_secret_value(SecretId=SECRETS + name)["SecretString"])
    except vault.exceptions.ResourceNotFoundException:
        return None
    return found


def _made(iam: Any, name: str) -> Mapping[str, str]:
    with suppress(iam.exceptions.EntityAlreadyExistsException):  # by somebody with the tools of AWS
        iam.create_user(UserName=name)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {"id": key["AccessKeyId"], "secret": key["SecretAccessKey"]}
