"""The job of docs/writing-jobs.md: orders from a dictionary into a dictionary."""

from trueup import Backfill, Batch, Outcome, Reject, Skip

ORDERS = {
    "acme": [{"id": n, "cents": 100 * n, "status": "paid"} for n in range(1, 5)],
    "zenith": [
        {"id": 11, "cents": 5, "status": "paid"},
        {"id": 12, "cents": 7, "status": "draft"},
        {"id": 13, "cents": -1, "status": "paid"},
    ],
}
TARGET: dict[int, int] = {}


class Orders(Backfill):
    source = ORDERS

    def count(self, part):
        return len(self.source[part.label])

    def read(self, part, after):
        done = 0 if after is None else int(after.removeprefix("v1:"))
        records = self.source[part.label]
        while batch := records[done : done + self.batch_size]:
            done += len(batch)
            yield Batch(batch, cursor=f"v1:{done}")

    def transform(self, order):
        if order["status"] == "draft":
            return Skip("draft")
        if order["cents"] < 0:
            return Reject("negative amount")
        return {"id": order["id"], "cents": order["cents"]}

    def write(self, rows, ctx):
        new = [row for row in rows if TARGET.get(row["id"]) != row["cents"]]
        TARGET.update({row["id"]: row["cents"] for row in new})
        return Outcome(written=len(new), unchanged=len(rows) - len(new))
