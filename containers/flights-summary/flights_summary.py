"""flights-summary: the flights of a day become one item per origin and carrier in DynamoDB."""

import csv
import io
from collections import defaultdict
from datetime import date
from decimal import Decimal

import boto3

from trueup import Backfill, Batch, Reject
from trueup.sources.dynamodb import FencedTable


class FlightsSummary(Backfill):
    """A partition is one object of CSV and one batch; what is NA there counts in no sum."""

    def open(self):
        self.s3 = boto3.client("s3")
        self.table = FencedTable(boto3.client("dynamodb"), self.params["table"], key=("route", "date"))

    def count(self, part):
        """Counted in lines, without the CSV reader, so that a read that stops half-way is noticed."""
        return self.object(part).count(b"\n") - 1  # the first line names the columns

    def read(self, part, after):
        if after is None:
            text = io.StringIO(self.object(part).decode(), newline="")
            yield Batch(list(csv.DictReader(text)), cursor="v1:end")

    def object(self, part):
        return self.s3.get_object(Bucket=self.params["bucket"], Key=part.input)["Body"].read()

    def transform(self, flight):
        try:
            when = date(*(int(flight[name]) for name in ("year", "month", "day")))
            numbers = {
                name: number(flight[name]) for name in ("dep_delay", "arr_delay", "air_time", "distance")
            }
        except (TypeError, ValueError) as error:  # TypeError: the line is too short
            return Reject(str(error))
        return {**flight, **numbers, "date": when.isoformat(), "cancelled": flight["dep_time"] == "NA"}

    def combine(self, flights):
        groups = defaultdict(list)
        for flight in flights:
            groups[flight["date"], flight["origin"], flight["carrier"]].append(flight)
        return [summary(*key, group) for key, group in groups.items()]

    def write(self, rows, ctx):
        return self.table.put(rows, ctx.fence)


def number(text):
    return None if text == "NA" else int(text)


def summary(when, origin, carrier, flights):
    """One item. Means are rounded to hundredths; their sums and counts are beside them, exact."""
    return {
        "route": f"{origin}#{carrier}",
        "date": when,
        "origin": origin,
        "carrier": carrier,
        "flights": len(flights),
        "cancelled": sum(flight["cancelled"] for flight in flights),
        **delays("departure", [flight["dep_delay"] for flight in flights]),
        **delays("arrival", [flight["arr_delay"] for flight in flights]),
        "air_minutes": sum(flight["air_time"] or 0 for flight in flights),
        "miles": sum(flight["distance"] for flight in flights if not flight["cancelled"]),
    }


def delays(what, minutes):
    known = [delay for delay in minutes if delay is not None]
    return {
        f"{what}_delay_count": len(known),
        f"{what}_delay_sum": sum(known),
        f"{what}_delay_mean": round(Decimal(sum(known)) / len(known), 2) if known else None,
        f"{what}_delay_max": max(known, default=None),
    }
