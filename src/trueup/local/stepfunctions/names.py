"""Names and ARNs of machines and executions (aws-facts section 1.1)."""

from __future__ import annotations

import re

from trueup.local.stepfunctions.errors import ApiError

MAX_NAME = 80
_FORBIDDEN = re.compile(r"[\s?*<>{}\[\]\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]")
_ROLE = re.compile(r"arn:aws[\w-]*:iam::\d*:role/\S+")
_KINDS = {
    "stateMachineArn": ("stateMachine",),
    "stateMachineVersionArn": ("stateMachine",),
    "stateMachineAliasArn": ("stateMachine",),
    "executionArn": ("execution",),
    "activityArn": ("activity",),
    "mapRunArn": ("mapRun",),
    "resourceArn": ("stateMachine", "activity"),
}
"""What the ARN in a field may be of."""
_PARTS = 7


def check_arn(arn: str, field: str, *more: str) -> str:
    """An ARN of the kind that a field takes, or of some `more` kinds.

    Raises ApiError: InvalidArn, and ValidationException for the ARN of a Distributed Map where a machine's is
    asked for [botocore].
    """
    if not arn.startswith("arn:"):
        raise ApiError("InvalidArn", f"Invalid Arn: 'Invalid ARN prefix: {arn}'")
    parts = arn.split(":")
    if len(parts) < _PARTS or not parts[6]:
        raise ApiError("InvalidArn", f"Invalid Arn: '{arn}'")
    if field in _KINDS and parts[5] not in (*_KINDS[field], *more):
        raise ApiError("InvalidArn", f"Invalid Arn: 'Resource type not valid in this context: {parts[5]}'")
    if field == "stateMachineArn" and "/" in parts[6]:
        raise ApiError("ValidationException", f"'{arn}' names a Distributed Map: give its machine's own ARN")
    return arn


def check_role(arn: str) -> str:
    """The ARN of an IAM role. Raises ApiError (InvalidArn)."""
    if not _ROLE.fullmatch(arn):
        raise ApiError("InvalidArn", f"Invalid Role Arn: '{arn}'")
    return arn


def is_name(text: str, most: int) -> bool:
    """Whether a text may be a name, or a label, of so many characters."""
    return 0 < len(text) <= most and not _FORBIDDEN.search(text)


def check_name(name: str) -> str:
    """A name that AWS takes. Raises ApiError (InvalidName)."""
    if not is_name(name, MAX_NAME):
        raise ApiError("InvalidName", f"Invalid Name: '{name}'")
    return name
