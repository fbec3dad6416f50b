import csv

import boto3

from trueup import Backfill, Batch, Skip
from trueup.sources.dynamodb import FencedTable


class Delays(Backfill):
    def open(self):
        self.table = FencedTable(boto3.client("dynamodb"), self.params["table"], key=["day", "flight"])

    def read(self, part, after):
        if after is None:
            with open(part.input) as file:
                yield Batch(list(csv.DictReader(file)), cursor="v1:end")

    def transform(self, flight):
        if flight["dep_delay"] == "NA":
            return Skip("cancelled")
        return {
            "day": f"{flight['year']}-{flight['month']:0>2}-{flight['day']:0>2}",
            "flight": f"{flight['carrier']}{flight['flight']} {flight['origin']} {flight['sched_dep_time']}",
            "delay": int(flight["dep_delay"]),
        }

    def write(self, rows, ctx):
        return self.table.put(rows, ctx.fence)
