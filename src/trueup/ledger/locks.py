"""One lock per target, holding all its writers with their windows. Its epoch never repeats."""

from __future__ import annotations

from trueup.errors import LockHeld, Refused, Stale
from trueup.ledger import keys
from trueup.ledger.runs import closed, open_clauses
from trueup.ledger.table import Clause, Table, TransactionFailed, Write, check_size
from trueup.model.ledger import Holder, Lock, Run
from trueup.model.states import RUN_ENDS

_ATTEMPTS = 50


class Locks:
    """Taking and leaving are transactions with the run item, so that neither outlives the run."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, target: str) -> Lock:
        """The lock as it stands; a free one of epoch 0 where nobody ever held it."""
        item = self._table.get(keys.lock(target)) or {}
        return Lock.model_validate({**item, "target": target})

    def take(self, run: Run) -> int:
        """Hold the run's window of its target, and give the epoch. A holder that asks again gets its own.

        Raises LockHeld where another holder's window overlaps or the lock has no room for one more, RunClosed
        where the run is not open.
        """
        for _ in range(_ATTEMPTS):
            lock = self.get(run.target)
            if run.run_id in lock.holders:
                return lock.holders[run.run_id].epoch
            _refuse_overlap(run, lock)
            if self._hold(run, lock):
                return lock.epoch + 1
        raise _contended(run.target)

    def _hold(self, run: Run, lock: Lock) -> bool:
        epoch = lock.epoch + 1
        holder = Holder(run_id=run.run_id, window=run.window, epoch=epoch)
        wanted = _rewrite(lock, {**lock.holders, run.run_id: holder}, epoch)
        _refuse_crowd(run, lock, wanted)
        on_run = Write(keys.run(run.run_id), sets={"epoch": epoch}, clauses=open_clauses(run.generation))
        try:
            self._table.transact([wanted, on_run])
        except TransactionFailed as refused:
            shut = refused.of(keys.run(run.run_id))
            if shut is not None:
                raise closed(run.run_id, shut) from refused
            return False
        return True

    def leave(self, run: Run) -> None:
        """Give the window back, once the run has ended. Asked again, nothing changes.

        Raises Refused where the run has not ended: a paused run keeps its lock.
        """
        for _ in range(_ATTEMPTS):
            lock = self.get(run.target)
            if run.run_id not in lock.holders:
                return
            if self._give_back(run, lock):
                return
        raise _contended(run.target)

    def _give_back(self, run: Run, lock: Lock) -> bool:
        ended = Clause("the run has ended", "status", "in", sorted(status.value for status in RUN_ENDS))
        others = {run_id: holder for run_id, holder in lock.holders.items() if run_id != run.run_id}
        try:
            self._table.transact(
                [_rewrite(lock, others, lock.epoch), Write(keys.run(run.run_id), clauses=(ended,))]
            )
        except TransactionFailed as refused:
            alive = refused.of(keys.run(run.run_id))
            if alive is None:
                return False
            raise Refused(
                f"Run {run.run_id} is {(alive.old or {}).get('status')} and keeps its lock on {run.target}.",
                clause=str(alive),
                wanted=sorted(RUN_ENDS),
                found=alive.old,
                remedy="End the run first; a paused run keeps its lock so that it can be resumed.",
            ) from refused
        return True


def _rewrite(lock: Lock, holders: dict[str, Holder], epoch: int) -> Write:
    return Write(
        keys.lock(lock.target),
        sets={
            "target": lock.target,
            "epoch": epoch,
            "version": lock.version + 1,
            "holders": {run_id: holder.document() for run_id, holder in holders.items()},
        },
        clauses=(
            Clause(
                "nobody changed the lock since", "version", "=", lock.version, or_absent=lock.version == 0
            ),
        ),
    )


def _refuse_overlap(run: Run, lock: Lock) -> None:
    for holder in lock.holders.values():
        if holder.window.overlaps(run.window):
            raise LockHeld(
                f"Run {holder.run_id} holds {holder.window} of {run.target}, which overlaps {run.window}.",
                clause="no other holder's window overlaps",
                wanted=run.window,
                found=lock.document(),
                remedy=f"Wait for {holder.run_id} to end, cancel it, or choose a window apart from it.",
            )


def _refuse_crowd(run: Run, lock: Lock, wanted: Write) -> None:
    try:
        check_size(wanted, dict(wanted.sets))
    except ValueError as error:
        raise LockHeld(
            f"{len(lock.holders)} runs hold windows of {run.target}, and its lock has no room for one more.",
            clause="the lock has room for one more holder",
            wanted=run.window,
            found=lock.document(),
            remedy="Wait for some of them to end, or start fewer runs that name many keys.",
        ) from error


def _contended(target: str) -> Stale:
    return Stale(
        f"The lock of {target} changed {_ATTEMPTS} times while it was being written.",
        clause="nobody changed the lock since",
        remedy="Try again.",
    )
