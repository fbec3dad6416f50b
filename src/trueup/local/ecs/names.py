"""Names that ECS gives: ARNs and ids, and what a caller may write in their place."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from trueup.local.ecs.errors import ApiError

DEFAULT_ACCOUNT = "000000000000"
DEFAULT_REGION = "us-east-1"
DEFAULT_CLUSTER = "default"

_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
_TASK_IDS = (32, 36)
"""Their lengths: hexadecimal digits, and of older tasks a UUID."""
_DIGITS = 10
"""Of a revision, which is an integer of 32 bits."""


def is_name(text: str) -> bool:
    """Whether a cluster or a family may be called so: at most 255 letters, digits, `-` and `_` [botocore]."""
    return _NAME.fullmatch(text) is not None


def new_task_id() -> str:
    """32 hexadecimal digits, as in the long ARN format."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Place:
    """The account and region that everything here is in."""

    account: str = DEFAULT_ACCOUNT
    region: str = DEFAULT_REGION

    def arn(self, rest: str) -> str:
        """The ARN of something of ECS."""
        return f"arn:aws:ecs:{self.region}:{self.account}:{rest}"

    def cluster(self, name: str) -> str:
        """A cluster's ARN."""
        return self.arn(f"cluster/{name}")

    def task(self, cluster: str, task_id: str) -> str:
        """A task's ARN, in the long format."""
        return self.arn(f"task/{cluster}/{task_id}")

    def service(self, cluster: str, name: str) -> str:
        """A service's ARN, in the long format."""
        return self.arn(f"service/{cluster}/{name}")

    def definition(self, family: str, revision: int) -> str:
        """A task definition's ARN."""
        return self.arn(f"task-definition/{family}:{revision}")


def cluster_name(reference: str | None) -> str:
    """The name in a cluster's name or ARN; `default` where there is none (API reference, RunTask)."""
    if not reference:
        return DEFAULT_CLUSTER
    return reference.rpartition(":cluster/")[2]


def task_id(reference: str, cluster: str) -> str:
    """The id in a task's id or ARN. Raises ApiError where it is none, or the ARN is of another cluster."""
    named, identifier = "", reference
    if reference.startswith("arn:"):
        _, kind, path = reference.rpartition(":task/")
        named, _, identifier = path.rpartition("/")
        if not kind:
            raise _invalid("Task Identifier is invalid")  # the wording: aws/aws-sdk-js#1466
    if named and named != cluster:
        raise _invalid(f"Invalid identifier: Identifier is for cluster {named}. Your cluster is {cluster}")
    if len(identifier) not in _TASK_IDS:
        # The wording: aws/aws-cli#10057, with the name that the parameter has in sil-org/ecs-deploy#43.
        raise _invalid("taskId length should be one of [32,36]")
    return identifier


def _invalid(message: str) -> ApiError:
    return ApiError("InvalidParameterException", message)


def family_and_revision(reference: str) -> tuple[str, int | None]:
    """What a family, `family:revision` or ARN names; no revision means the latest ACTIVE one.

    Raises ApiError where the revision is not a number.
    """
    family, _, revision = reference.rpartition("task-definition/")[2].partition(":")
    if revision and not (revision.isascii() and revision.isdigit() and len(revision) <= _DIGITS):
        raise ApiError("ClientException", f"Invalid revision number. Number: {revision}")
    return family, int(revision) if revision else None
