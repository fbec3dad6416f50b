"""Who is who: identities as AWS names them, compared and matched. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

_ASSUMED = re.compile(r"arn:([^:]+):sts::([0-9]*):assumed-role/([^/]+)/(.+)")

# IAM Identity Center writes these sessions' names itself: they tell one person from another. Everywhere
# else whoever assumes a role chooses the name.
_NAMED_BY_AWS = "AWSReservedSSO_"


def principal(who: str) -> str:
    """The ARN of a user, or of the role that was assumed: without its session, and without its path.

    An assumed role's ARN does not tell the role's path. What is no ARN (`schedule:nightly`) stays as it is.
    """
    found = _ASSUMED.fullmatch(who)
    if found is None:
        return who
    partition, account, role, _ = found.groups()
    return f"arn:{partition}:iam::{account}:role/{role}"


def person(who: str) -> str:
    """What two calls of one person have in common.

    A session of IAM Identity Center is a person of its own; of any other role all sessions are one, since
    whoever assumes it could call themselves anything.
    """
    found = _ASSUMED.fullmatch(who)
    return who if found and found[3].startswith(_NAMED_BY_AWS) else principal(who)


def is_one_of(who: str, patterns: Iterable[str]) -> bool:
    """Whether an identity is among those that patterns name.

    `ReleaseManager` is a role, `user/bob` a user, `arn:...` either, each with `*` for any characters.
    """
    own = principal(who)
    kind_and_name = own.rpartition(":")[2] if own.startswith("arn:") else ""
    for pattern in patterns:
        if pattern.startswith("arn:"):
            matched = own
        elif "/" in pattern:
            matched = kind_and_name
        else:
            matched = kind_and_name.removeprefix("role/")
        if fnmatchcase(matched, pattern):
            return True
    return False
