"""The two flights jobs as these tests run them: watched, and with one more trait where a test asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import boto3
import psycopg
from psycopg import sql

from trueup import Backfill, Outcome, Reconcile, Reject, Skip
from trueup.jobfile import load
from trueup.loading import load_class
from trueup.local.packaging import project


class Watched(Backfill):
    """Passes the point `write` before each write, and knows the cursor that the batch at hand came after."""

    points: Any
    after: str | None = None

    def read(self, part: Any, after: str | None) -> Iterator[Any]:
        """As the job reads."""
        self.after = after
        for batch in super().read(part, after):
            yield batch
            self.after = batch.cursor

    def write(self, rows: Any, ctx: Any) -> Any:
        """As the job writes. The witness first: a task that dies in between is thought to have written."""
        self.points.passed("write")
        self.bear_witness(rows, ctx)
        return super().write(rows, ctx)

    def bear_witness(self, rows: Any, ctx: Any) -> None:
        """Nothing: PostgreSQL does it by a trigger."""


class Witnessed(Watched):
    """Appends what it is about to write to a table that only grows, for a store without triggers."""

    def bear_witness(self, rows: Any, ctx: Any) -> None:
        """One item a write; a second one under the same fence and cursor would be refused."""
        boto3.client("dynamodb").put_item(
            TableName=f"{self.params['table']}-witness",
            Item={
                "partition": {"S": ctx.partition.id},
                "write": {"S": f"{ctx.fence}/{self.after}"},
                "fence": {"N": str(ctx.fence)},
                "after": {"S": str(self.after)},
                "routes": {"SS": [row["route"] for row in rows]},
            },
            ConditionExpression="attribute_not_exists(fence)",
        )


class Picky(Backfill):
    """Rejects some flights by their number, and skips those that were cancelled."""

    def transform(self, record: Any) -> Any:
        """As the job does, for the others."""
        if int(record["flight"]) % 50 == 7:
            return Reject("a number that nobody likes")
        return Skip("cancelled") if record["dep_time"] == "NA" else super().transform(record)


class PlainItems(Backfill):
    """Items put without a fence: what the guard is for."""

    def write(self, rows: Any, ctx: Any) -> Outcome:
        """Whoever comes last wins."""
        table = boto3.resource("dynamodb").Table(self.params["table"])
        for row in rows:
            table.put_item(Item={name: value for name, value in row.items() if value is not None})
        return Outcome(written=len(rows))


PLAIN_UPSERT = """
insert into {0} select * from json_populate_recordset(null::{0}, {1}::json)
on conflict (time_hour, carrier, flight, origin) do update set distance = excluded.distance
"""


class PlainRows(Backfill):
    """Rows upserted without a fence."""

    def write(self, rows: Any, ctx: Any) -> Outcome:
        """Whoever comes last wins."""
        statement = sql.SQL(PLAIN_UPSERT).format(sql.Identifier(self.params["table"]), json.dumps(list(rows)))
        with psycopg.connect(self.secret("dsn")) as connection:
            connection.execute(statement)
        return Outcome(written=len(rows))


TRAITS: dict[tuple[str, str], type] = {
    ("flights-rows", "witnessed"): Watched,
    ("flights-summary", "witnessed"): Witnessed,
    ("flights-rows", "picky"): Picky,
    ("flights-summary", "picky"): Picky,
    ("flights-rows", "unguarded"): PlainRows,
    ("flights-summary", "unguarded"): PlainItems,
}


def class_of(job: str, traits: Sequence[str], points: Any) -> type[Backfill] | type[Reconcile]:
    """The job's class under its traits, the first one outermost. `reconcile` needs none of its own."""
    if job == "reconcile":
        return Reconcile
    folder = project() / "containers" / job
    plain = load_class(load(folder / "job.yaml"), folder)
    return type("Job", (*(TRAITS[job, trait] for trait in traits), plain), {"points": points})
