"""flights-rows: every flight becomes a row in PostgreSQL."""

import csv
import io
from itertools import islice

import boto3

from trueup import Backfill, Batch, Reject
from trueup.sources.postgres import FencedTable

# fmt: off
COLUMNS = (
    "year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time",
    "arr_delay", "carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance", "hour",
    "minute", "time_hour",
)
# fmt: on
KEY = ("time_hour", "carrier", "flight", "origin")


class FlightsRows(Backfill):
    """The cursor is the number of flights done, such as `v1:120`; the table itself gives them their types."""

    def open(self):
        self.s3 = boto3.client("s3")
        self.table = FencedTable(self.secret("dsn"), self.params["table"], COLUMNS, KEY)

    def close(self):
        self.table.close()

    def count(self, part):
        """Counted in lines, without the CSV reader, so that a read that stops half-way is noticed."""
        return self.object(part).count(b"\n") - 1  # the first line names the columns

    def read(self, part, after):
        done = int(after.removeprefix("v1:")) if after else 0
        text = io.StringIO(self.object(part).decode(), newline="")
        flights = islice(csv.DictReader(text), done, None)
        while batch := list(islice(flights, self.batch_size)):
            done += len(batch)
            yield Batch(batch, cursor=f"v1:{done}")

    def object(self, part):
        return self.s3.get_object(Bucket=self.params["bucket"], Key=part.input)["Body"].read()

    def transform(self, flight):
        if None in flight or None in flight.values():
            return Reject("the line has more or fewer fields than there are columns")
        return {name: None if value == "NA" else value for name, value in flight.items()}

    def raise_fence(self, part, ctx):
        self.table.raise_fence(part.id, ctx.fence)

    def write(self, rows, ctx):
        return self.table.upsert(rows, ctx.partition.id, ctx.fence)
