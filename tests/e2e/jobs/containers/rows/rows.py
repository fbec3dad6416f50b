"""A job that writes numbered rows to PostgreSQL, and harms itself at the points that a request names."""

import atexit
import json
import os
import signal
import threading
import time
from collections import Counter

import psycopg

from trueup import Backfill, Batch, Reject, Skip
from trueup.sources.postgres import FencedTable

TABLE, COLUMNS, KEY = "numbered", ("day", "number", "square"), ("day", "number")
ORDER = json.loads(os.environ.get("TRUEUP_ORDER", "{}"))


class Harms:
    """What the request says shall happen to this launch when it passes a point for the nth time."""

    def __init__(self, harms):
        self._mine = [harm for harm in harms if harm["launch"] in (ORDER["launch"], "every")]
        self._passed = Counter()
        atexit.register(self.passed, "left")

    def passed(self, point):
        """Suffer what was meant for this point."""
        self._passed[point] += 1
        for harm in self._mine:
            if (point, self._passed[point]) == (harm["point"], harm.get("nth", 1)):
                getattr(self, harm["do"])(harm)

    def kill(self, harm):
        """From nowhere, as when memory runs out."""
        os.kill(os.getpid(), signal.SIGKILL)

    def freeze(self, harm):
        """Alive, and doing nothing, its heart neither."""
        os.kill(os.getpid(), signal.SIGSTOP)

    def hang(self, harm):
        """Alive, its heart too, but nothing gets on."""
        threading.Event().wait()

    def terminate(self, harm):
        """Asked to stop, as by ECS."""
        os.kill(os.getpid(), signal.SIGTERM)

    def leave(self, harm):
        """With an exit code, and without a word."""
        os._exit(harm["code"])

    def fail(self, harm):
        """By a bug."""
        raise RuntimeError("a bug that was asked for")


class Rows(Backfill):
    """Records 1 to `records` of each day; those that end in 3 are skipped, those in 7 rejected.

    The table of reads tells where each launch began, by the cursor that the ledger gave it.
    """

    def open(self):
        self.harms = Harms(self.params["harms"])
        self.harms.passed("opened")
        dsn = self.secret("dsn")
        self.table = FencedTable(dsn, TABLE, COLUMNS, KEY)
        self.reads = psycopg.connect(dsn, autocommit=True)

    def close(self):
        self.harms.passed("closing")
        self.reads.close()
        self.table.close()

    def count(self, part):
        return self.params["records"]

    def read(self, part, after):
        done = int(after.removeprefix("v1:")) if after else 0
        told = [ORDER["runId"], part.input, ORDER["launch"], done]
        if ORDER["phase"] != "rehearse" or self.params["trespass"]:  # a rehearsal cannot write even this
            self.reads.execute("insert into reads values (%s, %s, %s, %s)", told)
        self.harms.passed("reading")
        while done < self.params["records"]:
            end = min(done + self.params["batch"], self.params["records"])
            time.sleep(self.params["seconds"])
            yield Batch([(part.input, n) for n in range(done + 1, end + 1)], cursor=f"v1:{end}")
            self.harms.passed("checkpointed")
            done = end

    def transform(self, record):
        day, number = record
        if [day, number] == self.params["poison"]:
            raise ValueError(f"number {number} of {day} is poison")
        if number % 10 == 7:
            return Reject("it ends in 7")
        return Skip("it ends in 3") if number % 10 == 3 else self.row(day, number)

    def row(self, day, number):
        return {"day": day, "number": number, "square": number * number}

    def raise_fence(self, part, ctx):
        self.harms.passed("taken")
        self.table.raise_fence(part.id, ctx.fence)

    def write(self, rows, ctx):
        self.harms.passed("writing")
        outcome = self.table.upsert(rows, ctx.partition.id, ctx.fence)
        self.harms.passed("written")
        return outcome

    def finish(self, part, ctx):
        self.harms.passed("finishing")
        return ()
