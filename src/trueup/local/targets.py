"""What the sample jobs read and write on the local stack, and whom they write it as.

On AWS these exist before the template is deployed; its parameters name them.
"""

from __future__ import annotations

import secrets
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from trueup.errors import LocalStackError
from trueup.local.aws import Connect
from trueup.local.packaging import project
from trueup.local.postgres import OWN_SERVER
from trueup.local.stores import create_table
from trueup.sources.postgres import create_fence_table

FLIGHTS_BUCKET = "flights"
SUMMARY_TABLE = "flights-summary"
ROWS_TABLE = "flights"

_ROLE = sql.SQL(
    "do $$ begin create role {} login; exception when duplicate_object then null; end $$;"
    "alter role {} password {};"
)
_GRANTS = """
grant usage, create on schema public to flights_write;
grant usage on schema public to flights_read;
"""
# By the owner of the tables, for those that are made after it.
_READABLE = "alter default privileges in schema public grant select on tables to flights_read"


def make_targets(connect: Connect, dsn: str) -> dict[str, str]:
    """Make the targets of the sample jobs, empty, and give the parameters by which the template knows them.

    `dsn` is PostgreSQL's superuser's. The secrets name two users: one that can write, and one that cannot.
    Raises LocalStackError where PostgreSQL refuses.
    """
    connect("s3").create_bucket(Bucket=FLIGHTS_BUCKET)
    create_table(connect("dynamodb"), SUMMARY_TABLE, ["route", "date"])
    reader, writer = _rows(dsn)
    vault = connect("secretsmanager")
    return {
        "FlightsBucket": FLIGHTS_BUCKET,
        "FlightsSummaryTable": SUMMARY_TABLE,
        "FlightsPostgresReadSecret": _secret(vault, "flights/postgres/read", reader),
        "FlightsPostgresWriteSecret": _secret(vault, "flights/postgres/write", writer),
    }


def _rows(dsn: str) -> tuple[str, str]:
    """The table of rows, and the DSNs of who reads and who writes it. Raises LocalStackError."""
    try:
        reader, writer = _users(dsn)
        make_rows_table(writer)
    except psycopg.Error as error:
        raise LocalStackError(
            f"The users and tables of the sample jobs could not be made in PostgreSQL: {str(error).strip()}.",
            remedy=f"{OWN_SERVER} has to be the DSN of a user who may create others.",
        ) from error
    return reader, writer


def make_rows_table(dsn: str) -> None:
    """The table that flights-rows writes, and the fences beside it."""
    statements = (project() / "containers" / "flights-rows" / "flights.sql").read_text()
    with psycopg.connect(dsn) as connection:
        connection.execute(statements.encode())
    create_fence_table(dsn)


def _users(dsn: str) -> tuple[str, str]:
    """The DSNs of a user that can read alone, and of the owner of the tables."""
    with psycopg.connect(dsn) as connection:
        reader, writer = (_user(connection, dsn, name) for name in ("flights_read", "flights_write"))
        connection.execute(_GRANTS)
    with psycopg.connect(writer) as connection:
        connection.execute(_READABLE)
    return reader, writer


def _user(connection: psycopg.Connection[Any], dsn: str, name: str) -> str:
    password, role = secrets.token_urlsafe(), sql.Identifier(name)
    connection.execute(_ROLE.format(role, role, sql.Literal(password)))
    return make_conninfo(dsn, user=name, password=password)


def _secret(vault: Any, name: str, value: str) -> str:
    return str(vault.create_secret(Name=name, SecretString=value)["ARN"])
