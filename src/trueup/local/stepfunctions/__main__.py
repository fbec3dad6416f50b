"""`python -m trueup.local.stepfunctions`: serve until interrupted.

python -m trueup.local.stepfunctions --endpoint dynamodb=http://127.0.0.1:4566 --endpoint '*=http://…'
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import botocore.session

from trueup.local.serving import listen
from trueup.local.stepfunctions.engine import DEFAULT_ACCOUNT, DEFAULT_REGION
from trueup.local.stepfunctions.mocking import MockError
from trueup.local.stepfunctions.server import DEFAULT_PORT, Options, serve

_ENDPOINTS = {
    "lambda": "LAMBDA",
    "dynamodb": "DYNAMODB",
    "ecs": "ECS",
    "sqs": "SQS",
    "sns": "SNS",
    "batch": "BATCH",
    "glue": "GLUE",
    "sagemaker": "SAGE_MAKER",
}
"""Services whose endpoint Step Functions Local takes, and how it calls them. Its own it needs no longer: what
calls Step Functions calls the engine that runs it.
"""


def parse(arguments: list[str]) -> Options:
    """The options, Step Functions Local's among them; its environment variables give the defaults."""
    environment = {name: value for name, value in os.environ.items() if value}  # empty is as good as unset
    parser = argparse.ArgumentParser(prog="python -m trueup.local.stepfunctions", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 for any")
    parser.add_argument("--endpoint", action="append", default=[], metavar="SERVICE=URL")
    parser.add_argument("--aws", action="store_true", help="call AWS where a service has no endpoint")
    region = environment.get("AWS_DEFAULT_REGION", DEFAULT_REGION)
    parser.add_argument("--region", "--aws-region", type=_region, default=region)
    account = environment.get("AWS_ACCOUNT_ID", DEFAULT_ACCOUNT)
    parser.add_argument("--account", "--aws-account", type=_account, default=account)
    scale = environment.get("WAIT_TIME_SCALE", "1")
    parser.add_argument("--time-scale", "--wait-time-scale", type=_scale, default=scale)
    parser.add_argument("--timeout-scale", type=_scale, help="for timeouts and heartbeats alone")
    parser.add_argument("--mocks", type=Path, default=environment.get("SFN_MOCK_CONFIG"))
    for service, name in _ENDPOINTS.items():
        flag = f"--{name.lower().replace('_', '-')}-endpoint"
        default = environment.get(f"{name}_ENDPOINT")
        parser.add_argument(flag, dest=service, type=_url, default=default, metavar="URL")
    parser.add_argument("--step-functions-endpoint", metavar="URL", help="not needed, and not looked at")
    given = parser.parse_args(arguments)
    return Options(
        host=given.host,
        port=given.port,
        region=given.region,
        account=given.account,
        scale=given.time_scale,
        timeouts=given.timeout_scale,
        mocks=Path(given.mocks) if given.mocks else None,
        aws=given.aws,
        endpoints=_endpoints(given) | dict(_pair(parser, text) for text in given.endpoint),
    )


def _scale(text: str) -> float:
    """A factor for time. One of 0 would let limits pass before anything was done."""
    with contextlib.suppress(ValueError):
        if 0 < (scale := float(text)) < math.inf:
            return scale
    raise argparse.ArgumentTypeError(f"a number above 0 is needed (also in WAIT_TIME_SCALE), not {text!r}")


def _region(text: str) -> str:
    """A region, which goes into names and hosts."""
    if re.fullmatch(r"[a-z0-9-]{1,63}", text):
        return text
    raise argparse.ArgumentTypeError(
        f"a region such as us-east-1 is needed (also in AWS_DEFAULT_REGION), not {text!r}"
    )


def _account(text: str) -> str:
    """An account, which goes into names."""
    if re.fullmatch(r"[0-9]{1,12}", text):
        return text
    raise argparse.ArgumentTypeError(f"up to 12 digits are needed (also in AWS_ACCOUNT_ID), not {text!r}")


def _url(text: str) -> str:
    """Where a service is."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(text)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return text
    raise argparse.ArgumentTypeError(
        f"a URL such as http://127.0.0.1:4566 is needed (also in …_ENDPOINT), not {text!r}"
    )


def _endpoints(given: argparse.Namespace) -> dict[str, str]:
    """Those in Step Functions Local's options and variables: LAMBDA_ENDPOINT and its like."""
    return {service: url for service in _ENDPOINTS if (url := getattr(given, service))}


def _pair(parser: argparse.ArgumentParser, text: str) -> tuple[str, str]:
    service, separator, url = text.partition("=")
    if not separator:
        parser.error(f"--endpoint takes SERVICE=URL, not {text!r}")
    if service != "*" and service not in botocore.session.Session().get_available_services():
        parser.error(f"--endpoint takes a service by botocore's name, such as dynamodb, not {service!r}")
    try:
        return service, _url(url)
    except argparse.ArgumentTypeError as error:
        parser.error(f"--endpoint {service}: {error}")


def _announce(url: str, _: Callable[[], None]) -> None:
    sys.stdout.write(f"Step Functions at {url}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Serve until interrupted; exit with 2 and a sentence where an option makes that impossible."""
    options = parse(arguments)
    try:
        listening = listen(options.host, options.port)
    except (OSError, OverflowError) as error:
        sys.stderr.write(
            f"Nobody can listen at {options.host}:{options.port} ({error}). Give another --port.\n"
        )
        sys.exit(2)
    try:
        with contextlib.closing(listening), contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(replace(options, listening=listening), _announce))
    except MockError as error:
        sys.stderr.write(f"{error}\nMend the file that --mocks or SFN_MOCK_CONFIG names.\n")
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
