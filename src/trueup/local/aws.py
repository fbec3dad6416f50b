"""AWS for the local stack: MiniStack, as a process of its own.

MiniStack keeps everything in memory; each start is empty and several run side by side.
"""

from __future__ import annotations

import http.client
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

from trueup.errors import LocalStackError
from trueup.local.process import Started, guard, nobody

OWN_ENDPOINT = "TRUEUP_AWS_ENDPOINT"
REGION = "us-east-1"
START_SECONDS = 60.0
HEALTH = "/_ministack/health"
HEALTH_TIMEOUT_SECONDS = 5.0

# An allow-list: MiniStack reads its settings, among them those that persist state, from the environment,
# and hands its environment on to the functions that it runs.
INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "SSL_CERT_FILE", "SYSTEMROOT")
SETTINGS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    "MINISTACK_REGION": REGION,
    "LOG_LEVEL": "WARNING",
    # These listen on fixed ports, so two servers would collide.
    "IOT_MTLS_ENABLED": "0",
    "SFTP_ENABLED": "0",
    # With an engine in reach it removes the containers of every other MiniStack on the machine.
    "DOCKER_HOST": "unix:///nonexistent/docker.sock",
}

# To this machine no proxy leads: clients that honour HTTP_PROXY, or the system's own settings, are told so.
NO_PROXY = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")

LEADS_TO = "AWS_ENDPOINT_URL_SFN"
_APP, _LEADING_APP = "ministack.app:app", "trueup.local.ministack_app:app"

_making = Lock()

Connect = Callable[[str], Any]
"""Gives a client of a service, by boto3's name for it."""


@contextmanager
def ministack(
    services: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    python: str | None = None,
    started: Started = nobody,
) -> Iterator[str]:
    """Yield the endpoint URL of an empty AWS that lives as long as the block.

    `services` limits it to those (all, when empty); `env` is added to its environment, which its Lambda
    functions inherit, and where it says AWS_ENDPOINT_URL_SFN, rules and schedules start executions there;
    `python` is one that has MiniStack, where it is not to be this one.
    Where TRUEUP_AWS_ENDPOINT is set, that URL is yielded and nothing is started.
    Raises LocalStackError when MiniStack is missing or does not start.
    """
    if own := os.environ.get(OWN_ENDPOINT):
        yield own
        return
    if python is None:
        _require_ministack()
    with guard("trueup-aws-") as under:
        listener = _listener()
        port = listener.getsockname()[1]
        environment = _environment(under.folder, port, services) | dict(env or {})
        argv = [python or sys.executable, *_arguments(_LEADING_APP if LEADS_TO in environment else _APP)]
        server = under.serve("MiniStack", argv, env=environment, hand_over=listener)
        server.wait_until(lambda: _healthy(port), START_SECONDS)
        started(server)
        yield f"http://127.0.0.1:{port}"


def _arguments(app: str) -> list[str]:
    """MiniStack's own main() cannot take over a socket; hypercorn, which that runs, can: standard input."""
    return ["-m", "hypercorn", app, "--bind", "fd://0", "--keep-alive", "75"]


def _listener() -> socket.socket:
    """A socket bound here and handed over: nobody can take the port between choosing and using it."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    return listener


def client(service: str, endpoint: str, **options: Any) -> Any:
    """A boto3 client of `service` at `endpoint`, with credentials that open nothing.

    Its pool holds 64 connections, so that many threads can share it; retries are botocore's standard mode.
    `options` go to boto3 as they are, `config` is merged over ours.
    """
    config = Config(
        proxies=proxies_to(endpoint),
        max_pool_connections=64,
        connect_timeout=5,
        read_timeout=60,
        tcp_keepalive=True,
        retries={"mode": "standard", "max_attempts": 5},
        s3={"addressing_style": "path"},  # bucket names are no host names here
        inject_host_prefix=False,  # nor is `sync-` of Step Functions
    )
    options["config"] = config.merge(options["config"]) if "config" in options else config
    # One session, for each reads the descriptions of services anew; it makes one client after the other.
    with _making:
        return _session().client(service, endpoint_url=endpoint, **options)


@cache
def _session() -> boto3.session.Session:
    """Ours, which nobody else configures: boto3's default one is shared."""
    return boto3.session.Session("test", "test", region_name=REGION)


def proxies_to(endpoint: str | None) -> dict[str, str] | None:
    """The proxies that botocore is to take to an address: none to this machine, else (None) what it finds."""
    host = (urlsplit(endpoint).hostname if endpoint else None) or ""
    own = host == "localhost" or host.endswith(".localhost")
    with suppress(ValueError):
        own = own or ip_address(host).is_loopback
    return {} if own else None


def connector(endpoint: str) -> Connect:
    """Clients of everything that one endpoint serves."""
    return lambda service: client(service, endpoint)


def _require_ministack() -> None:
    if find_spec("ministack") is None:
        raise LocalStackError(
            "The local AWS is not installed: the package ministack is missing.",
            remedy=f"Install trueup[local], or set {OWN_ENDPOINT} to an emulator of your own.",
        )


def _environment(folder: Path, port: int, services: Iterable[str]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    own = {
        "GATEWAY_PORT": str(port),
        "HOME": str(folder),  # no ~/.aws
        "TMPDIR": str(folder),  # unpacked functions go with the folder
        "SERVICES": ",".join(services),
    }
    return kept | SETTINGS | NO_PROXY | own


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HEALTH_TIMEOUT_SECONDS)
    try:
        connection.request("GET", HEALTH)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
