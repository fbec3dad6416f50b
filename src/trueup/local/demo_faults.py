"""What goes wrong in `trueup demo`: tasks that die, and, with `--faults`, everything else too.

What counts as a fault of a task strikes with a checkpoint, where it made progress, or once: two faults
without progress in between end a partition.
"""

from __future__ import annotations

from trueup.local.faults import Fault, fault

SUMMARY, ROWS = "flights-summary", "flights-rows"
"""The one is awaited by its exit, the other by its word."""

DEATHS: tuple[Fault, ...] = (
    fault("crash", job=SUMMARY, after=(0.5, 4), probability=0.4, times=12),
    # Whoever is awaited by its word is missed only after a heartbeat, so these die side by side.
    fault("crash", job=ROWS, launches=tuple(range(1, 9)), after=(0.5, 4), probability=0.4),
)

EVERYTHING: tuple[Fault, ...] = (
    # Launches.
    fault("throttled", times=2),
    fault("throttled-parameter", times=2),
    fault("throttled-failure", times=2),
    fault("capacity", times=1),
    fault("capacity-failure", times=1),
    fault("cold-start", seconds=(1, 3), times=2),
    fault("cannot-pull", job=SUMMARY, times=1),
    # Tasks. Those that are awaited by their word die side by side here too.
    fault("crash", job=SUMMARY, after=(0.5, 4), probability=0.4, times=4),
    fault("crash", job=ROWS, launches=tuple(range(1, 10)), after=(0.5, 4), probability=0.4, times=3),
    fault("kill", job=SUMMARY, checkpoint=1, times=1),
    fault("exit", job=SUMMARY, checkpoint=1, code=70, times=1),
    fault("freeze", job=SUMMARY, checkpoint=1, thaw=(1, 2), times=1),
    fault("interrupt", job=SUMMARY, checkpoint=1, times=1),
    # What tasks hear of DynamoDB and S3, and what functions do.
    fault("call-throttled", service="dynamodb", times=6),
    fault("call-failed", service="s3", times=3),
    fault("call-slow", seconds=(0.2, 1), times=6),
    fault("call-unanswered", seconds=0.5, times=3),
    fault("call-answer-lost", service="dynamodb", operation="UpdateItem", times=3),
    fault("call-failed", function="*", times=3),
    fault("call-answer-lost", function="accept", times=2),
    # What Step Functions hears of tasks: by its silence it finds out a word that is lost.
    fault("callback-lost", job=ROWS, word="Success", times=1),
    fault("callback-twice", job=ROWS, times=2),
    fault("callback-late", job=ROWS, seconds=2, times=2),
    # What machines hear of functions and services.
    fault("function-died", function="accept", times=2),
    fault("function-timed-out", function="settle", when="before", times=1),
    fault("answer-lost", call="runTask", times=1),
    fault("answer-lost", call="updateItem", times=1),
)
