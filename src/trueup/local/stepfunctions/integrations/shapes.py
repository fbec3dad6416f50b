"""Between the parameters of a Task and botocore's: names, types, and text where the API wants text.

Parameters and results of integrations are in PascalCase, whatever the API's own case
([dg:connect-to-resource]); keys of maps (DynamoDB attributes, SNS attributes) are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import botocore.session
from botocore.loaders import UnknownServiceError
from botocore.model import OperationNotFoundError

from trueup.local.stepfunctions.hash_order import hash_order
from trueup.local.stepfunctions.values import Json, to_text

Shape = Any
"""A botocore shape; botocore has no types of its own."""

_INITIALS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]+")
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_SUFFIX = "Service"
"""Left out at the end of a service's id: Config Service is `config`."""


@cache
def _session() -> Any:
    return botocore.session.Session()


@cache
def _model(service: str) -> Any:
    try:
        return _session().get_service_model(service)
    except UnknownServiceError as error:
        raise KeyError(service) from error


def boto_name(sdk_name: str) -> str:
    """botocore's name of what `aws-sdk:<name>` says. Raises KeyError where there is no such service.

    The names are those of the Java SDK ([dg:supported-services-awssdk]): `sfn`, `cloudwatchlogs`,
    `eventbridge`; what the command line calls a service is no other name of it.
    """
    for name in _candidates(sdk_name):
        if sdk_prefix(name).lower() == sdk_name:
            return name
    raise KeyError(sdk_name)


def _candidates(sdk_name: str) -> Iterator[str]:
    """Services to look at, the likely one first: reading the models of all takes seconds."""
    if sdk_name in _OTHER_NAMES:
        yield _OTHER_NAMES[sdk_name]
    yield from (name for name in _session().get_available_services() if name.replace("-", "") == sdk_name)


_OTHER_NAMES = {
    "applicationdiscovery": "discovery",
    "cloudwatchlogs": "logs",
    "cognitoidentityprovider": "cognito-idp",
    "costandusagereport": "cur",
    "costexplorer": "ce",
    "databasemigration": "dms",
    "directory": "ds",
    "directoryservicedata": "ds-data",
    "elasticloadbalancing": "elb",
    "elasticloadbalancingv2": "elbv2",
    "elasticsearch": "es",
    "eventbridge": "events",
    "iotdataplane": "iot-data",
    "iotjobsdataplane": "iot-jobs-data",
    "lexmodelbuilding": "lex-models",
    "lexmodelsv2": "lexv2-models",
    "lexruntimev2": "lexv2-runtime",
    "marketplacemetering": "meteringmarketplace",
    "migrationhub": "mgh",
    "pinpointsmsvoice": "sms-voice",
    "serverlessapplicationrepository": "serverlessrepo",
    "sfn": "stepfunctions",
    "simpledb": "sdb",
}
"""What botocore calls services whose ids say something else."""


def sdk_prefix(service: str) -> str:
    """How errors of `aws-sdk:` name a service: its id in the Java SDK's case (DynamoDb, Sfn, S3).

    Recorded on AWS: test_dynamodb_put_item_no_such_table, test_sfn_send_task_outcome_with_no_such_token.
    """
    name = "".join(word.capitalize() for word in _WORD.findall(str(_model(service).service_id)))
    return name.removesuffix(_SUFFIX)


@cache
def operation(service: str, action: str) -> Any:
    """The operation that an action names. Raises KeyError."""
    try:
        return _model(service).operation_model(action[:1].upper() + action[1:])
    except OperationNotFoundError as error:
        raise KeyError(action) from error


def error_name(service: str, code: str) -> str | None:
    """The exception of the service's model that an error code stands for; None where it has none."""
    for shape in _model(service).error_shapes:
        if code in (shape.name, shape.error_code):
            return str(shape.name)
    return None


def lower(name: str) -> str:
    """A member's name without the case of its first letter, by which the two sides differ."""
    return name[:1].lower() + name[1:]


def upper(name: str) -> str:
    """A member's name as optimized integrations write it."""
    return name[:1].upper() + name[1:]


def java(name: str) -> str:
    """A member's name as `aws-sdk:` integrations write it: the Java SDK's, which lowers the letters that it
    begins with together (DBInstances is DbInstances, BOOL is Bool, ETag and ChecksumCRC32 stay).

    Recorded on AWS: test_s3_get_object; BOOL: aws/aws-sdk-js#4294.
    """
    if name == "NULL":
        return "Nul"
    found = _INITIALS.match(name)
    return found[0].capitalize() + name[found.end() :] if found else upper(name)


def spelling(*, sdk: bool) -> Callable[[str], str]:
    """How integrations of a kind spell the names of members."""
    return java if sdk else upper


def members(shape: Shape) -> Mapping[str, str]:
    """The members of a structure: the API's names by all their names in lower case."""
    return {lower(spelled): name for name in shape.members for spelled in (java(name), name)}


def to_api(shape: Shape, value: Json) -> Any:
    """A Task's parameters as botocore takes them: without nulls, and JSON as text where text is wanted."""
    if shape is None:
        return {}
    match shape.type_name:
        case "structure" if isinstance(value, dict):
            return _structure(shape, value)
        case "map" if isinstance(value, dict):
            return {key: to_api(shape.value, item) for key, item in value.items()}
        case "list" if isinstance(value, list):
            return [to_api(shape.member, item) for item in value]
        case "string" | "character":
            return value if isinstance(value, str) else to_text(value)
        case "boolean" if isinstance(value, str):
            return value.lower() == "true"
        case "integer" | "long" if isinstance(value, str | float):
            return int(value)
        case "float" | "double" if isinstance(value, str):
            return float(value)
        case "blob":
            return (value if isinstance(value, str) else to_text(value)).encode()
        case _:
            return value


def _structure(shape: Shape, value: Mapping[str, Json]) -> dict[str, Any]:
    known = members(shape)
    named = {known.get(lower(name), name): item for name, item in value.items() if item is not None}
    return {
        name: to_api(shape.members[name], item) if name in shape.members else item
        for name, item in named.items()
    }


def leaves(shape: Shape, value: Json, name: str = "") -> Iterator[tuple[str, str, Json]]:
    """Every value of some parameters that has none within: its name, the type that it should have, itself."""
    if shape is None or value is None:
        return
    match shape.type_name:
        case "structure" if isinstance(value, dict):
            known = members(shape)
            for key, item in value.items():
                yield from leaves(shape.members.get(known.get(lower(key))), item, key)
        case "map" if isinstance(value, dict):
            for key, item in value.items():
                yield from leaves(shape.value, item, key)
        case "list" if isinstance(value, list):
            for item in value:
                yield from leaves(shape.member, item, name)
        case kind:
            yield name, kind, value


def to_state(shape: Shape, value: Any, *, sdk: bool) -> Json:
    """An answer of botocore's as a Task's output. Times are text for aws-sdk, milliseconds for the others.

    Members are in the order of the alphabet, after them what is streamed (recorded: test_s3_get_object).
    """
    if shape is None or value is None:
        return None if shape is not None else {}
    match shape.type_name:
        case "structure":
            given = {
                spelling(sdk=sdk)(name): name
                for name, item in value.items()
                if name in shape.members and item is not None
            }
            order = sorted(given, key=lambda spelled: (_streams(shape.members[given[spelled]]), spelled))
            return {
                spelled: to_state(shape.members[given[spelled]], value[given[spelled]], sdk=sdk)
                for spelled in order
            }
        case "map":
            return {key: to_state(shape.value, value[key], sdk=sdk) for key in hash_order(value)}
        case "list":
            return [to_state(shape.member, item, sdk=sdk) for item in value]
        case "timestamp":
            return _time(value, sdk=sdk)
        case "blob":
            return _text(value)
        case _:
            return value


def _streams(shape: Shape) -> bool:
    return bool(shape.serialization.get("streaming"))


def _time(value: datetime | float, *, sdk: bool) -> Json:
    moment = value.astimezone(UTC) if isinstance(value, datetime) else datetime.fromtimestamp(value, UTC)
    if not sdk:
        return round(moment.timestamp() * 1000)
    fraction = f".{moment.microsecond // 1000:03d}".rstrip("0").rstrip(".") if moment.microsecond else ""
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"


def read_bytes(value: Any) -> bytes:
    """The bytes of a blob, be it a stream."""
    raw = value.read() if hasattr(value, "read") else value
    return raw.encode() if isinstance(raw, str) else bytes(raw)


def _text(value: Any) -> str:
    return read_bytes(value).decode(errors="replace")
