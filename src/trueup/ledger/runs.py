"""Runs: created once, launched from while open, closed before anything else is decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trueup.clock import Clock
from trueup.errors import NotFound, RequestError, RunClosed, Stale
from trueup.ledger import keys
from trueup.ledger.asked import asked_otherwise, check_the_same, fingerprint
from trueup.ledger.audit import Audit
from trueup.ledger.table import Clause, ConditionFailed, Key, Table, TransactionFailed, Write
from trueup.model.base import cut
from trueup.model.ledger import Run
from trueup.model.result import LONGEST_MESSAGE
from trueup.model.states import RUN_ENDS, RunStatus, run_may_become
from trueup.model.verification import VerifiedBy

NEVER_EXISTED = Clause("the run is new", "runId", "absent")


def open_clauses(generation: int, dispatch: int | None = None) -> tuple[Clause, ...]:
    """What must hold before a task is launched or registers, or a run locks: open, and of this generation.

    For tasks of a dispatch also that no later one was begun: a fan-out that is redriven by hand, beside the
    one that took its place, finds the gate shut.
    """
    clauses = (
        Clause("the run is open", "status", "=", RunStatus.RUNNING.value),
        Clause("the run is of this generation", "generation", "=", generation),
    )
    if dispatch is None:
        return clauses
    return (*clauses, Clause("it is the run's last dispatch", "dispatches", "=", dispatch))


def closed(run_id: str, refusal: ConditionFailed) -> RunClosed:
    """The error for a run that is not open for a generation."""
    found = refusal.old or {}
    return RunClosed(
        f"Run {run_id} takes no tasks of this generation and dispatch: "
        f"it is {found.get('status', 'unknown')}, generation {found.get('generation')}, "
        f"dispatch {found.get('dispatches', 0)}.",
        clause=str(refusal),
        wanted=refusal.clause.value if refusal.clause else None,
        found=refusal.old,
        remedy="Leave; whoever resumes the run starts tasks of their own.",
    )


class Runs:
    """The run items."""

    def __init__(self, table: Table, clock: Clock, audit: Audit) -> None:
        self._table = table
        self._clock = clock
        self._audit = audit

    def create(self, run: Run, *, why: str = "", asked: Key | None = None, undone: Run | None = None) -> Run:
        """Create the run once per request; asked again, give the run that the request started.

        `asked` is where the request is remembered: by its id, or by a schedule and its time. `undone` is the
        run whose repairs this one takes back, as it was read: it is told of that in the same transaction.
        Raises RequestError where the request id was used for something else, Stale where another run began to
        take back the same.
        """
        asked = asked or keys.request(run.request_id)
        trail = self._audit.entry(
            run.run_id, who=run.requester, verb="start", subject=run.run_id, why=why, after=run.document()
        )
        started = {"runId": run.run_id, "fingerprint": fingerprint(run), "at": run.document()["createdAt"]}
        try:
            self._table.transact(
                [
                    Write(keys.run(run.run_id), item=_stored(run), clauses=(NEVER_EXISTED,)),
                    Write(asked, item=started, clauses=(Clause("the request is new", "runId", "absent"),)),
                    Write(keys.unsettled(run.run_id), item={"runId": run.run_id}),
                    Write(keys.listed(run.run_id, run.created_at), item={"runId": run.run_id}),
                    trail,
                    *(self._taken_back(undone, run, why) if undone else ()),
                ]
            )
        except TransactionFailed as refusal:
            if undone and not refusal.of(asked) and (other := refusal.of(keys.run(undone.run_id))):
                raise _changed(undone, "undo", other) from refusal
            return self._started_before(run, refusal.of(asked), refusal)
        return run

    def _taken_back(self, undone: Run, by: Run, why: str) -> Iterator[Write]:
        """What a run is told of one that takes its repairs back: on itself, and on its trail."""
        before = list(undone.undone_by)
        as_read = Clause("it is taken back by those that were read", "undoneBy", "=", before, or_absent=True)
        now = [*before, by.run_id]
        yield Write(keys.run(undone.run_id), sets={"undoneBy": now}, clauses=(as_read,))
        yield self._audit.entry(
            undone.run_id,
            who=by.requester,
            verb="undo",
            subject=undone.run_id,
            why=why,
            before={"undoneBy": before},
            after={"undoneBy": now},
        )

    def _started_before(self, run: Run, asked: ConditionFailed | None, refusal: TransactionFailed) -> Run:
        if asked is None:
            raise RequestError(
                f"There is a run called {run.run_id} already, started by another request.",
                field="runId",
                remedy="Ask again: the next attempt draws another name.",
            ) from refusal
        found = asked.old or {}
        if found.get("fingerprint") != fingerprint(run):
            raise asked_otherwise(run, found.get("runId"), "job, window or parameters") from refusal
        before = self.get(found["runId"])
        check_the_same(before, run)
        return before

    def get(self, run_id: str) -> Run:
        """The run as it stands. Raises NotFound where there is none."""
        item = self._table.get(keys.run(run_id))
        if item is None:
            raise NotFound(
                f"There is no run {run_id}.", remedy="Check the id; `trueup status` lists the runs."
            )
        return Run.model_validate(item)

    def pin(self, run: Run, plan_key: str, plan_sha256: str, partitions: int) -> Run:
        """Name the plan that the run is for. The same one again changes nothing.

        Raises RunClosed, and Stale where another plan is pinned.
        """
        unpinned = Clause("no other plan is pinned", "planSha256", "=", plan_sha256, or_absent=True)
        sets = {"planKey": plan_key, "planSha256": plan_sha256, "partitions": partitions}
        clauses = (*open_clauses(run.generation), unpinned)
        try:
            self._table.write(Write(keys.run(run.run_id), sets=sets, clauses=clauses))
        except ConditionFailed as refusal:
            if refusal.clause is not unpinned:
                raise closed(run.run_id, refusal) from refusal
            raise Stale(
                f"Run {run.run_id} has another plan already.",
                clause=str(refusal),
                wanted=plan_sha256,
                found=refusal.old,
                remedy="Read the run again and go by its plan.",
            ) from refusal
        return self.get(run.run_id)

    def of_request(self, request_id: str, asked: Key | None = None) -> Run | None:
        """The run that a request started; None where it started none. `asked` as `create` takes it."""
        found = self._table.get(asked or keys.request(request_id))
        return None if found is None else self.get(found["runId"])

    def verify(self, run: Run, verification: VerifiedBy, *, who: str) -> Run:
        """Write which run verifies this one, or what that found. Asked again, nothing changes.

        Raises Stale where the run is not open any more, or not as it was read.
        """
        if verification == run.verification:
            return run
        after = run.model_copy(update={"verification": verification})
        before, now = (one.document()["verification"] for one in (run, after))
        verb = "verify" if verification.verdict is None else "verified"
        trail = self._audit.entry(
            run.run_id,
            who=who,
            verb=verb,
            subject=run.run_id,
            why=str(verification),
            before=before,
            after=now,
        )
        clauses = (
            *open_clauses(run.generation),
            Clause("the verification is as it was read", "verification", "=", before),
        )
        self._write(
            Write(keys.run(run.run_id), sets={"verification": now}, clauses=clauses), trail, run, verb
        )
        return after

    def newest(self, after: str = "") -> Iterator[tuple[str, str]]:
        """All runs, the newest first, each as its id and the mark that `after` takes to go on behind it."""
        for item in self._table.query(keys.RUNS, "AT#", after):
            yield item["runId"], item["SK"]

    def many(self, marked: Sequence[tuple[str, str]]) -> Iterator[tuple[Run, str]]:
        """The runs of what `newest` gave, each with its mark."""
        found = self._table.get_many([keys.run(run_id) for run_id, _ in marked])
        for run_id, mark in marked:
            if (item := found.get(keys.run(run_id))) is not None:
                yield Run.model_validate(item), mark

    def unsettled(self) -> Iterator[str]:
        """The ids of the runs that the sweep looks after, in order: from their creation until `settled`."""
        for item in self._table.query(keys.UNSETTLED, "ID#"):
            yield item["runId"]

    def settled(self, run_id: str) -> None:
        """Take a run off the sweep's list: it is paused or has ended, and nothing is left to be done for it.

        Where it is neither (it was resumed meanwhile), it stays.
        """
        status = [RunStatus.PAUSED.value, *sorted(end.value for end in RUN_ENDS)]
        at_rest = Clause("the run is paused or has ended", "status", "in", status)
        listed = Write(keys.unsettled(run_id), delete=True)
        try:
            self._table.transact([listed, Write(keys.run(run_id), clauses=(at_rest,))])
        except TransactionFailed:
            return

    def next_launch(self, run_id: str, generation: int, dispatch: int | None = None) -> int:
        """Issue the next launch number, if the run is open, of this generation and in this dispatch.

        Raises RunClosed.
        """
        return self._next("launches", run_id, open_clauses(generation, dispatch))

    def next_dispatch(self, run_id: str, generation: int) -> int:
        """Issue the number of the next dispatch; the gate is shut to tasks of those before. Raises RunClosed.

        Tasks are to be looked for after this, as after closing: what registered before is seen, and nothing
        registers any more. A number that no dispatch gets does no harm.
        """
        return self._next("dispatches", run_id, open_clauses(generation))

    def _next(self, number: str, run_id: str, clauses: tuple[Clause, ...]) -> int:
        write = Write(keys.run(run_id), adds={number: 1}, clauses=clauses)
        try:
            old = self._table.write(write)
        except ConditionFailed as refusal:
            raise closed(run_id, refusal) from refusal
        return int((write.applied_to(old) or {})[number])

    def stop(self, run_id: str, goal: RunStatus, *, who: str, why: str, generation: int | None = None) -> Run:
        """Close the run to new tasks; its goal says what it becomes when no task is left.

        Asked again, nothing changes. `generation`: only while it is of that one.
        Raises RunClosed where it is closed for another goal or of another generation, ValueError for what
        cannot be a goal.
        """
        if not run_may_become(RunStatus.STOPPING, goal):
            raise ValueError(f"a run that is stopping cannot become {goal}")
        run = self.get(run_id)
        if generation not in (None, run.generation):
            raise RunClosed(
                f"Run {run_id} is of generation {run.generation} now.",
                clause="the run is of this generation",
                wanted=generation,
                found=run.document(),
                remedy="Leave it: another execution serves it.",
            )
        if run.status is not RunStatus.RUNNING:
            return self._stopped_before(run, goal)
        closed_now = {"status": RunStatus.STOPPING, "goal": goal, "reason": cut(why, LONGEST_MESSAGE)}
        after = run.model_copy(update={**closed_now, "open_seconds": int(run.open_for(self._clock.now()))})
        self._change(run, after, who=who, verb=f"stop:{goal.value.lower()}", why=why)
        return after

    @staticmethod
    def _stopped_before(run: Run, goal: RunStatus) -> Run:
        if goal in (run.status, run.goal):
            return run
        raise RunClosed(
            f"Run {run.run_id} is {run.status}" + (f" on its way to {run.goal}." if run.goal else "."),
            clause="the run is open",
            wanted=goal,
            found=run.document(),
            remedy="Wait until it got there.",
        )

    def finish(self, run_id: str, status: RunStatus, *, who: str, why: str = "") -> Run:
        """Write a run's end. A run with tasks not proved stopped is never called paused or ended.

        Raises Stale where tasks are left or the run changed meanwhile, ValueError where no arrow leads there.
        """
        run = self.get(run_id)
        if run.status is status:
            return run
        if not run_may_become(run.status, status) or run.goal not in (None, status):
            raise ValueError(f"run {run_id} is {run.status} with goal {run.goal} and cannot become {status}")
        left = [str(item["SK"]) for item in self._table.query(keys.run(run_id)[0], "TASK#")]
        if left:
            raise Stale(
                f"Run {run_id} cannot become {status}: "
                f"{len(left)} of its tasks are not proved stopped ({left[0]}).",
                clause="no task is left",
                wanted=0,
                found={"tasks": left},
                remedy="Stop them and prove it; then write the run's end again.",
            )
        after = run.model_copy(update={"status": status, "goal": None})
        self._change(run, after, who=who, verb=status.value.lower(), why=why)
        return after

    def _change(self, before: Run, after: Run, *, who: str, verb: str, why: str) -> None:
        states = {"status": before.status.value}, {"status": after.status.value, "goal": after.goal}
        trail = self._audit.entry(
            before.run_id,
            who=who,
            verb=verb,
            subject=before.run_id,
            why=why,
            before=states[0],
            after=states[1],
        )
        sets = {
            "status": after.status.value,
            "goal": after.goal and after.goal.value,
            "reason": after.reason,
            "openSeconds": after.open_seconds,
        }
        clauses = (
            Clause("the run is as it was read", "status", "=", before.status.value),
            Clause("the run is of the generation that was read", "generation", "=", before.generation),
        )
        self._write(Write(keys.run(before.run_id), sets=sets, clauses=clauses), trail, before, verb)

    def _write(self, write: Write, trail: Write, before: Run, verb: str) -> None:
        try:
            self._table.transact([write, trail])
        except TransactionFailed as refusal:
            raise _changed(before, verb, refusal.refusals[0]) from refusal


def _changed(before: Run, verb: str, found: ConditionFailed) -> Stale:
    return Stale(
        f"Run {before.run_id} changed while {verb!r} was written.",
        clause=str(found),
        wanted=before.status,
        found=found.old,
        remedy="Read it again and decide again.",
    )


def _stored(run: Run) -> dict[str, object]:
    # What is empty is left out: an attribute that is not there is one that can still be written once.
    return {name: value for name, value in run.document().items() if value is not None and value != ""}
