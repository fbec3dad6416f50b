"""Operations on tags, of machines and of activities."""

from __future__ import annotations

from trueup.local.stepfunctions import tags
from trueup.local.stepfunctions.api.requests import Body, required
from trueup.local.stepfunctions.engine import Engine
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.values import Json


def given(body: Body) -> dict[str, str]:
    """The tags of a request. Raises ApiError for a key that is missing, given twice, or AWS's own."""
    tags = body.get("tags") or []
    for number, tag in enumerate(tags, 1):
        if tag.get("key") is None:
            raise ApiError(
                "ValidationException",
                f"1 validation error detected: Value null at 'tags.{number}.member.key' failed to satisfy "
                "constraint: Member must not be null",
            )
    found = {tag["key"]: tag.get("value", "") for tag in tags}
    if len(found) < len(tags):
        raise ApiError("ValidationException", "A key is given by more than one tag")
    own = [key for key in found if key.lower().startswith("aws:")]
    if own:
        raise ApiError("ValidationException", f"Keys of tags cannot begin with aws: '{own[0]}'")
    return found


def tag(engine: Engine, body: Body) -> Json:
    """TagResource."""
    arn = required(body, "resourceArn")
    tags.tag(arn, _resource(engine, arn), given(body))
    return {}


def untag(engine: Engine, body: Body) -> Json:
    """UntagResource."""
    tags.untag(_resource(engine, required(body, "resourceArn")), body["tagKeys"])
    return {}


def list_all(engine: Engine, body: Body) -> Json:
    """ListTagsForResource."""
    found = _resource(engine, required(body, "resourceArn")).tags
    return {"tags": [{"key": key, "value": value} for key, value in found.items()]}


def _resource(engine: Engine, arn: str) -> tags.Tagged:
    try:
        return engine.activities.find(arn) if ":activity:" in arn else engine.machines.find(arn)
    except ApiError as error:
        raise ApiError("ResourceNotFound", f"Resource not found: '{arn}'") from error
