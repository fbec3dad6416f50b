"""A job that names its partitions itself, after the user that it finds itself to be."""

import json
import os
import signal

import psycopg

from trueup import Backfill, Batch, Outcome


class Named(Backfill):
    """Three partitions of one record each."""

    def partitions(self, window):
        launch = json.loads(os.environ["TRUEUP_NAMING"])["launch"]
        if launch in self.params["killed"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.params["error"]:
            raise ValueError(self.params["error"])
        with psycopg.connect(self.secret("dsn")) as connection:
            (user,) = connection.execute("select current_user").fetchone()
        return [f"{user}-{number}" for number in range(1, 4)]

    def read(self, part, after):
        if after is None:
            yield Batch([part.label], cursor="v1:end")

    def write(self, rows, ctx):
        return Outcome(written=len(rows))
