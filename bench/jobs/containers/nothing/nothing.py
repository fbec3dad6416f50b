"""A job without any work: one batch of one record in each partition, and nothing is written."""

from trueup import Backfill, Batch, Outcome


class Nothing(Backfill):
    """Reads a record and keeps it to itself."""

    def read(self, part, after):
        if after is None:
            yield Batch([part.label], cursor="v1:end")

    def write(self, rows, ctx):
        return Outcome(unchanged=len(rows))
