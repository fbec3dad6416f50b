"""Tags of machines and activities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from trueup.local.stepfunctions.errors import ApiError

MAX_TAGS = 50
"""Per resource: aws-facts section 1.1 [dg:service-quotas]."""


class Tagged(Protocol):
    """Something that has tags."""

    tags: dict[str, str]


def tag(arn: str, resource: Tagged, tags: Mapping[str, str]) -> None:
    """Add tags. Raises ApiError (TooManyTags)."""
    if len({**resource.tags, **tags}) > MAX_TAGS:
        raise ApiError("TooManyTags", f"A resource has at most {MAX_TAGS} tags: '{arn}'")
    resource.tags.update(tags)


def untag(resource: Tagged, keys: Iterable[str]) -> None:
    """Remove tags; those that are not there are removed already."""
    for key in keys:
        resource.tags.pop(key, None)
