"""A job whose records are steps, and that writes nothing."""

import time

from trueup import Backfill, Batch, Outcome


class Steps(Backfill):
    """Each batch is one step, and has a cursor."""

    def read(self, part, after):
        done = int(after.removeprefix("v1:")) if after else 0
        for step in range(done, self.params["steps"]):
            time.sleep(self.params["seconds"])
            yield Batch([step], cursor=f"v1:{step + 1}")

    def write(self, rows, ctx):
        return Outcome(written=len(rows))
