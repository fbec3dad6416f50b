"""A task that names the partitions of a run by the job's own code, under the role that cannot write."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from trueup.errors import JobError, LaunchTaken, RunClosed, StoreUnavailable
from trueup.exits import Exit
from trueup.jobs import Backfill, Reconcile, Settings
from trueup.model.base import cut
from trueup.model.ledger import TaskItem
from trueup.model.naming import Brief, Named, NamingOrder
from trueup.model.plan import Partition, Window
from trueup.model.result import LONGEST_MESSAGE
from trueup.model.states import Phase
from trueup.planning import each_named
from trueup.worker.heart import BeatThread, Heart
from trueup.worker.loop import leave_now, make_job
from trueup.worker.patience import Patience
from trueup.worker.stopping import Stopped, Stopping
from trueup.worker.telling import told
from trueup.worker.tools import Tools

log = logging.getLogger("trueup.worker")


def name_partitions(
    job_class: type[Backfill] | type[Reconcile],
    order: NamingOrder,
    brief: Brief,
    tools: Tools,
    *,
    no_progress: Callable[[str], None] = leave_now,
) -> Exit:
    """Ask the job for its partitions, store them or the error that it raised, and give the exit code.

    `no_progress` is called where the hook takes longer than the task may live.
    Raises StoreUnavailable; UsageError where this is other code than the brief names.
    """
    tools.identity.expect(brief.read_code)
    task = _registration(order, tools)
    try:
        tools.ledger.tasks.register(order.run_id, task)
    except (RunClosed, LaunchTaken) as refused:
        log.info("not needed: %s", refused)
        return Exit.INTERRUPTED
    heart = _heart(order, brief, tools, task, no_progress)
    try:
        with BeatThread(heart, tools.beat_seconds):
            named = _named(job_class, brief, tools)
    except Stopped as stopped:
        log.warning("leaving: %s", stopped)
        return stopped.stop.exit
    tools.artifacts.put_named(order.run_id, order.launch, named)
    return Exit.DONE


def hook_names(job: Backfill, window: Window) -> Iterator[Partition | str]:
    """What the job's `partitions(window)` gives, with the job open meanwhile.

    Raises RequestError where something is neither name nor Partition, JobError where there is no such hook,
    and what the hook raises.
    """
    job.open()
    try:
        yield from each_named(job.partitions(window))
    except NotImplementedError as missing:
        raise JobError(
            str(missing), remedy="Write the hook, or declare the partitions in job.yaml."
        ) from missing
    finally:
        job.close()


def _named(job_class: type[Backfill] | type[Reconcile], brief: Brief, tools: Tools) -> Named:
    try:
        return Named(partitions=tuple(_asked(job_class, brief, tools)))
    except (Stopped, StoreUnavailable):
        raise
    except (Exception, SystemExit) as error:
        log.exception("the job's code cannot name the partitions")
        return Named(error=cut(f"{type(error).__name__}: {told(error)}", LONGEST_MESSAGE))


def _asked(job_class: type[Backfill] | type[Reconcile], brief: Brief, tools: Tools) -> list[Partition | str]:
    """All of them, or none: a hook that was asked to slow down is asked again from its beginning."""
    stopping = Stopping(tools.control, tools.clock, brief.job.task.minutes)
    patience = Patience(stopping, tools.rng, on_throttle=lambda: tools.metrics.emit({"Throttled": 1}))

    def listed() -> list[Partition | str]:
        job, found = namer_of(job_class, brief, tools), []
        for entry in hook_names(job, brief.window):
            if stop := stopping.ask():
                raise Stopped(stop)
            found.append(entry)
        return found

    return patience.call("partitions", listed)


def namer_of(job_class: type[Backfill] | type[Reconcile], brief: Brief, tools: Tools) -> Backfill:
    """What names the partitions: the job, or the sides of a reconciliation."""
    settings = Settings(brief.params, tools.secret)
    if issubclass(job_class, Backfill):
        return make_job(job_class, settings)
    from trueup.worker.comparing import Quantiles  # with the comparer, which backfills never need

    return Quantiles(brief, job_class(settings), tools)


def _heart(
    order: NamingOrder, brief: Brief, tools: Tools, task: TaskItem, no_progress: Callable[[str], None]
) -> Heart:
    tools.control.progressed_at = tools.clock.monotonic()
    return Heart(
        tools.ledger,
        order.run_id,
        task,
        tools.control,
        tools.clock,
        no_progress_seconds=brief.job.task.minutes * 60,
        follow=lambda run: None,
        no_progress=no_progress,
        callback=tools.callback,
        callback_seconds=tools.callback_seconds,
    )


def _registration(order: NamingOrder, tools: Tools) -> TaskItem:
    now = tools.clock.now()
    return TaskItem(
        phase=Phase.PLAN,
        slice_id=0,
        launch=order.launch,
        generation=order.generation,
        task=tools.identity.task,
        registered_at=now,
        beat_at=now,
    )
