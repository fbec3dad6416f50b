"""What the schemas tell people: titles, a sentence for each field, and the rules that a schema cannot say."""

from __future__ import annotations

from collections.abc import Mapping

from trueup.schemas.reconcile_texts import RECONCILE, RULES

TITLES: Mapping[str, str] = {
    "job": "trueup job file of a backfill",
    "reconcile": "trueup job file of a reconciliation",
    "request": "trueup request",
    "result": "trueup result contract",
}

# By model and validator. A test holds this equal to the model validators, so that no rule hides in code.
BEYOND_SCHEMA: Mapping[str, Mapping[str, str]] = {
    "JobFile": {
        "_rules_across_sections": (
            "exactly one of `class` and `command` is given; "
            "batch.targetSeconds <= batch.maximumSeconds < task.stopSeconds; "
            "task.memory is an amount that Fargate offers with task.cpu; "
            "each abort rule's `unit` is one that its `of` is measured in, "
            "and only those about partitions or records have a `minimum`"
        ),
    },
    **RULES,
    "KeyRangePartitions": {
        "_one_way_to_cut": "integer keys need `size` and take no `splits`; text keys take no `size`",
    },
    "ListPartitions": {"_each_once": "each item is there once"},
    "Request": {"_a_window_or_keys": "`from` and `to` come together, and never with `keys`"},
}

_RECORDS = {
    "recordsRead": "Records that `read` delivered: used + skipped + rejected.",
    "recordsUsed": "Records that were turned into rows to write, or into none on purpose.",
    "recordsSkipped": "Records that the job left out on purpose, each with a reason.",
    "recordsRejected": "Records that cannot be used; they are kept in the rejects object.",
    "recordsProduced": "Rows made from the records that were used: written + unchanged + refused.",
    "recordsWritten": "Rows that changed the target. Always 0 in a rehearsal.",
    "recordsUnchanged": "Rows that the target held already; in a rehearsal, every row.",
    "recordsRefused": "Rows that the target refused; they are kept in the rejects object.",
}

_RESULT = {
    "ResultContract": {
        "schemaVersion": "The version of this contract. Always said, so that a later one cannot be misread.",
        "jobId": "The job's name.",
        "status": "SUCCEEDED: all partitions did. INTERRUPTED: work remains. FAILED: some did not make it.",
        "startedAt": "When the task started, with its zone.",
        "finishedAt": "When the task wrote this, with its zone; not before startedAt.",
        **{name: f"Over all partitions. {text}" for name, text in _RECORDS.items()},
        "outputLocation": "Where the outputs lie, for people.",
        "warnings": "What people should know although nothing failed.",
        "runId": "The run that the task worked for.",
        "generation": "Which execution of the run launched the task.",
        "phase": "What the task was for.",
        "sliceId": "The slice that the task worked through.",
        "launch": "The number issued before the task was started.",
        "planSha256": "The plan that the task read: what was approved is what ran.",
        "taskArn": "The task itself.",
        "taskDefinition": "The code that ran: task definition with its revision.",
        "imageDigest": "The code that ran: the image's digest, never a tag.",
        "partitions": "What this task did, partition by partition; what others did is not repeated.",
    },
    "PartitionResult": {
        "partitionId": "The partition's id, as the plan has it.",
        "fence": "The fence under which the task took the partition.",
        "status": "SUCCEEDED, INTERRUPTED (work remains), FAILED, or REJECTED (too many rejects).",
        "cursor": "How far it got, as in the ledger's checkpoint; null where nothing was read.",
        "recordsCounted": "How many records there are, counted apart from reading; null if nobody counted.",
        **_RECORDS,
        "skipped": "How many records were skipped for which reason; sums to recordsSkipped.",
        "rejects": "Where the rejected records and refused rows are kept; null where there are none.",
        "outputs": "The objects that the job wrote for this partition.",
        "error": "Why the partition failed; null unless something did.",
    },
    "Output": {
        "location": "Where the object lies.",
        "sha256": "The SHA-256 of its bytes, in hexadecimal digits.",
        "records": "How many records it holds.",
    },
    "PartitionError": {
        "kind": "The kind of error, such as the exception's class.",
        "message": "What happened.",
        "record": "The record or range that it happened to.",
        "batchAfter": "The cursor after which the failing batch began.",
    },
}

_REQUEST = {
    "Request": {
        "job": "The job to do.",
        "requestId": "Asking twice with the same id starts one run.",
        "requester": "Who asks; on the audit trail, and never the one who approves.",
        "from": "The start of the window, included.",
        "to": "The end of the window, not included.",
        "keys": "The partitions by name, instead of a window.",
        "params": "Parameters, as the job's own schema wants them.",
        "dryRun": "Rehearse only: nothing is written.",
        "sample": "Work so many partitions only.",
        "canary": "Apply so many partitions, the first of the plan, and ask a person before the rest.",
        "undo": "Take back what this run repaired, once somebody approved that.",
        "maxConcurrency": "Run at most so many tasks at once, instead of the job's own limit.",
        "comment": "Why; on the audit trail.",
    }
}

_INPUT = "A pattern that says where a partition's input lies."
_EMPTY = "Whether a partition without any record is fine (allowed) or a sign of trouble (refused)."
_KEY = "The part of the partition's id before the equals sign."
_SECONDS = "The work in one partition, where neither `count` nor the job's history says."

_JOB = {
    "JobFile": {
        "name": "The job's name; lower case letters, digits and dashes, at most 40.",
        "kind": "What kind of job this is.",
        "class": "The Python class that does the work, as `module:Class`.",
        "command": "The command that does the work, in any language; nothing runs commands yet.",
        "description": "What the job does, for people.",
        "parameters": "A JSON Schema of the job's parameters.",
        "secrets": "Names of secrets by mode: reading and writing tasks know different ones.",
        "partitions": "How the work is cut into units of progress.",
        "order": "Which partitions come first.",
        "target": "What the job writes.",
        "batch": "How large a batch is, and how long it may take.",
        "task": "The container that the work runs in.",
        "limits": "How much of the world a run may use.",
        "errors": "How many records of a partition may be rejected.",
        "abort": "Bounds that end the whole run.",
        "approval": "Who has to agree before anything is written.",
        "verify": "The reconciliation that is run when everything was applied.",
    },
    "Verify": {
        "job": "The name of a reconcile job.",
        "params": "Its parameters: `{name}` is one of this job's, `{from}` and `{to}` the window's ends.",
    },
    "AbortRule": {
        "of": "What is bounded.",
        "above": "The run ends when the figure exceeds this.",
        "unit": "The unit of `above`.",
        "minimum": "How many partitions (`rejects`: records) must have ended before the rule is looked at.",
    },
    "Approval": {
        "required": "Whether a person must approve before anything is written.",
        "roles": "Patterns of roles and users who may approve; empty: anyone but the requester.",
        "expiresHours": "For how many hours a gate can be decided, and an approval used.",
        "canary": "So many partitions, the first of the plan, are applied before the rest is asked for.",
    },
    "BatchSettings": {
        "size": "How many records a batch should have.",
        "targetSeconds": "How long a batch should take.",
        "maximumSeconds": "How long a batch may take; less than task.stopSeconds.",
    },
    "DatePartitions": {
        "by": "Cut by date.",
        "unit": "How much time one partition covers.",
        "timezone": "The zone in which days begin.",
        "input": _INPUT,
        "empty": _EMPTY,
        "seconds": _SECONDS,
    },
    "KeyRangePartitions": {
        "by": "Cut by ranges of a key.",
        "key": _KEY,
        "type": "Whether keys are whole numbers or text.",
        "size": "How many whole numbers one range covers.",
        "splits": "Where text keys are cut.",
        "input": _INPUT,
        "empty": _EMPTY,
        "seconds": _SECONDS,
    },
    "ListPartitions": {
        "by": "One partition for each item of a list.",
        "key": _KEY,
        "items": "The items; empty: the request's keys.",
        "input": _INPUT,
        "empty": _EMPTY,
        "seconds": _SECONDS,
    },
    "S3PrefixPartitions": {
        "by": "One partition for each object under a prefix.",
        "key": _KEY,
        "prefix": "The prefix, as `s3://bucket/path/`.",
        "suffix": "Only objects whose key ends with this.",
        "empty": _EMPTY,
        "seconds": _SECONDS,
    },
    "JobPartitions": {
        "by": "The job's own `partitions` hook names them.",
        "key": _KEY,
        "empty": _EMPTY,
        "seconds": _SECONDS,
    },
    "Target": {
        "name": "The target's name; one lock per name.",
        "guard": "What protects the target from a task that should be dead.",
    },
    "TaskSettings": {
        "cpu": "CPU units.",
        "memory": "Memory in MiB.",
        "minutes": "How long one task should run.",
        "wait": "Whether the task's exit is waited for, or its callback.",
        "stopSeconds": "How long the task has between being asked to stop and being killed.",
        "noProgressSeconds": "After so long without progress the task ends itself.",
    },
    "Limits": {
        "maxConcurrency": "How many tasks run at once.",
        "recordsPerSecond": "How many records the whole run reads in a second.",
    },
    "ErrorSettings": {"rejects": "How many rejected records and refused rows a partition may have."},
    "Secrets": {"read": "What a rehearsal may know.", "write": "What a writing task may know."},
}

DESCRIPTIONS: Mapping[str, Mapping[str, str]] = {**_RESULT, **_REQUEST, **_JOB, **RECONCILE}
