"""Names and ARNs of machines and executions (aws-facts section 1.1)."""

from __future__ import annotations

import re

from trueup.local.stepfunctions.errors import ApiError

MAX_NAME = 80
_FORBIDDEN = re.compile(r"[\s?*<>{}\[\]\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]")


def check_arn(arn: str) -> str:
    """Something that is an ARN. Raises ApiError (InvalidArn)."""
    if not arn.startswith("arn:"):
        raise ApiError("InvalidArn", f"Invalid Arn: 'Invalid ARN prefix: {arn}'")
    return arn


def check_name(name: str) -> str:
    """A name that AWS takes. Raises ApiError (InvalidName)."""
    if not 0 < len(name) <= MAX_NAME or _FORBIDDEN.search(name):
        raise ApiError("InvalidName", f"Invalid Name: '{name}'")
    return name
