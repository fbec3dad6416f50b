"""Servers that people give in place of the stack's own, checked before anything is made of them."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import psycopg
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from psycopg.conninfo import conninfo_to_dict

from trueup.errors import LocalStackError, UsageError
from trueup.local.aws import OWN_ENDPOINT, client
from trueup.local.postgres import OWN_SERVER

CONNECT_SECONDS = 5


def check_given(aws: str | None) -> None:
    """Check the emulator, given here or by its variable, and PostgreSQL, where they are given."""
    if endpoint := aws or os.environ.get(OWN_ENDPOINT):
        check_aws(endpoint)
    if dsn := os.environ.get(OWN_SERVER):
        check_postgres(dsn)


def check_aws(endpoint: str) -> None:
    """An emulator's endpoint. Raises UsageError where it is no URL, LocalStackError where nobody answers."""
    if not _is_url(endpoint):
        raise UsageError(
            f"{endpoint!r} is no address of an emulator.",
            remedy=f"Give --aws, or {OWN_ENDPOINT}, one like http://127.0.0.1:4566.",
        )
    once = Config(retries={"total_max_attempts": 1}, connect_timeout=CONNECT_SECONDS, read_timeout=30)
    try:
        client("s3", endpoint, config=once).list_buckets()
    except ClientError as error:
        raise LocalStackError(
            f"The emulator at {endpoint} does not serve S3: {error.response['Error']['Message']}.",
            remedy="Give one that serves what docs/local-stack.md lists, or none: MiniStack is started then.",
        ) from error
    except BotoCoreError as error:
        raise LocalStackError(
            f"No emulator answers at {endpoint}: {error}.",
            remedy="Start it, correct the address, or give none: MiniStack is started then.",
        ) from error


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def check_postgres(dsn: str) -> None:
    """A server's DSN. Raises UsageError where it is none, LocalStackError where nobody answers."""
    try:
        conninfo_to_dict(dsn)
    except psycopg.Error as error:
        raise UsageError(
            f"{OWN_SERVER} is no DSN of a PostgreSQL server: {error}.",
            remedy="Give one like host=127.0.0.1 user=postgres dbname=postgres.",
        ) from error
    try:
        psycopg.connect(dsn, connect_timeout=CONNECT_SECONDS).close()
    except psycopg.Error as error:
        raise LocalStackError(
            f"PostgreSQL does not take the connection that {OWN_SERVER} describes: {str(error).strip()}.",
            remedy="Start the server, correct the DSN, or unset it: one is started then.",
        ) from error
