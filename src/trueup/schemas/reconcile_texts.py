"""What the schema of a reconciliation's job file tells people."""

from __future__ import annotations

from collections.abc import Mapping

_TABLE = "The table's name, which may hold parameters as `{name}`."
_ABSENT = "Whether an attribute that is not there is a case of its own (kept), or NULL (null)."
_KIND = "What kind of source this is."
_FIGURES = "The figures by name: an operation, and the column that it is over."

RECONCILE: Mapping[str, Mapping[str, str]] = {
    "Reconciliation": {
        "name": "The job's name; lower case letters, digits and dashes, at most 40.",
        "kind": "What kind of job this is.",
        "class": "The Python class with the job's hooks, as `module:Class`; most jobs need none.",
        "description": "What the job does, for people.",
        "parameters": "A JSON Schema of the job's parameters.",
        "secrets": "Names of secrets by mode: comparing and repairing tasks know different ones.",
        "order": "Which partitions come first.",
        "task": "The container that the work runs in.",
        "limits": "How much of the world a run may use.",
        "abort": "Bounds that end the whole run.",
        "approval": "Who has to agree before anything is repaired.",
        "truth": "What is right by declaration.",
        "target": "What is derived from it; conservation has none.",
        "key": "The columns that name a row, in order.",
        "columns": "The columns that are compared, by name: a type, or all that is declared of one.",
        "invariant": "What must hold between the two.",
        "version": "The timestamp column that says when a row last changed.",
        "lag": "How many seconds a change may take from one side to the other.",
        "empty": "Whether a side without any row is fine (allowed) or a sign of trouble (refused).",
        "values": "Whether findings show values (shown) or keys, names and reasons only (masked).",
        "waitFor": "An object that has to be there before anything is compared.",
        "looks": "How often a difference that keeps changing is looked at again.",
        "partitions": "How the keys are cut into units of progress.",
        "repair": "That what is confirmed is repaired, once its report is approved; without it nothing is.",
        "locks": "The target that repairs lock, by the name that its backfill gives it; else the job's name.",
    },
    "RepairSettings": {
        "deletes": "Whether rows that the truth lacks are deleted, where an approval says so (asked).",
        "breaker": "When a repair stops by itself.",
    },
    "Breaker": {
        "share": "The share of items that may be stale or fail.",
        "sample": "Of so many items at least.",
    },
    "WaitFor": {
        "location": "The object, as `s3://bucket/key`, such as an export's `manifest-summary.json`.",
        "minutes": "How long it is waited for; then the run fails, and the verdict is INCOMPLETE.",
    },
    "Column": {
        "name": "The column's name, here and where a side does not say otherwise.",
        "type": "How its values are written canonically and compared.",
        "tolerance": "The largest difference that is none, as text; of timestamps in seconds.",
        "normal": "The Unicode form in which texts are compared.",
        "compared": "Whether it is compared, or only carried along.",
        "truth": "How the truth holds it, where that differs.",
        "target": "How the target holds it, where that differs.",
    },
    "Reading": {
        "name": "Its name there.",
        "format": "How a timestamp is written: ISO, or a number since 1970.",
        "zone": "The time zone of timestamps that have none.",
        "times": "What makes the declared unit of the stored one, as text: 0.01 for cents.",
        "encoding": "How bytes are written in text.",
        "nulls": "Texts that mean NULL.",
    },
    "PostgresSource": {
        "kind": _KIND,
        "table": "The table or view, which may be qualified and hold parameters as `{name}`.",
        "dsn": "Which of the job's secrets holds the connection string.",
        "where": "SQL that limits its rows.",
    },
    "DynamoSource": {
        "kind": _KIND,
        "table": _TABLE,
        "segments": "In how many segments it is scanned.",
        "absent": _ABSENT,
        "begins": "Attributes, and how their texts begin: items of which that is not so are left out.",
        "count": "Whether each scan is proved by a count of its own, which costs as much as the scan.",
    },
    "DynamoExportSource": {
        "kind": _KIND,
        "location": "The folder of the export's `manifest-summary.json`, as `s3://bucket/path`.",
        "absent": _ABSENT,
    },
    "ObjectsSource": {
        "kind": _KIND,
        "location": "The prefix of the objects, as `s3://bucket/path`.",
        "format": "CSV with a header, JSON Lines, or Parquet.",
        "ordered": "Whether they are sorted by the key, over all objects in order of their names.",
        "absent": _ABSENT,
        "delimiter": "What separates the fields of CSV.",
        "records": "How many records there must be.",
        "named": "After which column of the key they are called, where they are: it is checked.",
    },
    "ObjectNames": {
        "column": "The column of the key.",
        "suffix": "What follows its value in the last part of the name, such as `.csv`.",
    },
    "InventorySource": {
        "kind": _KIND,
        "location": "The folder of the inventory's `manifest.json`, as `s3://bucket/path`.",
        "versions": "A row for each object that is there (latest), or for each version of one (all).",
    },
    "Rows": {"kind": "The same keys with the same values."},
    "Exists": {
        "kind": "The same keys; values are not looked at.",
        "ways": "In which of them the keys must be.",
    },
    "Derived": {
        "kind": "The target holds what a fold over the truth's events gives.",
        "events": "The truth's columns beyond the key.",
        "order": "The columns that put the events of one key in order.",
        "figures": _FIGURES,
    },
    "Aggregates": {"kind": "The same figures for each group; the key names the group.", "figures": _FIGURES},
    "Conservation": {
        "kind": "Sums are zero for each key of the truth.",
        "sums": "The columns that are added up.",
    },
    "Figure": {"op": "The operation.", "of": "The column that it is over; `count` has none."},
    "SplitPartitions": {
        "by": "Ranges of the key, cut at splits.",
        "key": "The part of a partition's id before the equals sign.",
        "splits": "Where the key is cut: keys, or their first columns, in ascending order.",
        "seconds": "The work in one partition.",
    },
    "QuantilePartitions": {
        "by": "Ranges of the key with about as many rows each, as both sides say when the run is planned.",
        "key": "The part of a partition's id before the equals sign.",
        "count": "About how many partitions there should be.",
        "seconds": "The work in one partition.",
    },
}

RULES: Mapping[str, Mapping[str, str]] = {
    "Reconciliation": {
        "_rules_across_sections": (
            "`key`, `version` and the invariant name columns that are declared; "
            "conservation has no target and every other invariant one; "
            "`{name}` in a source is a declared parameter; splits ascend; "
            "task.memory is an amount that Fargate offers with task.cpu"
        ),
    },
    "Column": {"_rules": "tolerances, Unicode forms, zones, formats and units fit the type"},
    "Figure": {"_what_is_needed": "`count` has no column, every other operation names one in `of`"},
}
