"""Names and ARNs of machines and executions (aws-facts section 1.1)."""

from __future__ import annotations

import re

from trueup.local.stepfunctions.errors import ApiError

MAX_NAME = 80
_FORBIDDEN = re.compile(r"[\s?*<>{}\[\]\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]")
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
    """An ARN of the kind that a field takes, or of some `more` kinds. Raises ApiError (InvalidArn)."""
    if not arn.startswith("arn:"):
        raise ApiError("InvalidArn", f"Invalid Arn: 'Invalid ARN prefix: {arn}'")
    parts = arn.split(":")
    if len(parts) < _PARTS or not parts[6]:
        raise ApiError("InvalidArn", f"Invalid Arn: '{arn}'")
    if field in _KINDS and parts[5] not in (*_KINDS[field], *more):
        raise ApiError("InvalidArn", f"Invalid Arn: 'Resource type not valid in this context: {parts[5]}'")
    return arn


def check_name(name: str) -> str:
    """A name that AWS takes. Raises ApiError (InvalidName)."""
    if not 0 < len(name) <= MAX_NAME or _FORBIDDEN.search(name):
        raise ApiError("InvalidName", f"Invalid Name: '{name}'")
    return name
