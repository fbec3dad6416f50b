"""Documents that hold no contract: unreadable bytes, and JSON that is not as the schema has it."""

from __future__ import annotations

from .contract_cases import FIFTH, OUTPUT, PLAN, Row

UNREADABLE = [
    Row("too large", lambda c: c.known(max_bytes=100), "result-fits", "bytes, and 100 are allowed"),
    Row(
        "not UTF-8",
        lambda c: c.is_stored_as(b'{"a": "\xff"}'),
        "result-is-utf-8",
        "byte 7 of 10 is not UTF-8",
    ),
    Row(
        "half a character",
        lambda c: c.is_stored_as(b'{"a": "\\ud800"}'),
        "result-is-utf-8",
        "half of a surrogate",
    ),
    Row("nothing at all", lambda c: c.is_stored_as(b""), "result-is-json", "the 0 characters are not JSON"),
    Row(
        "a log line",
        lambda c: c.is_stored_as(b"done, 45 rows"),
        "result-is-json",
        "the 13 characters are not JSON",
    ),
    Row("cut off", lambda c: c.is_stored_as(c.data[:-9]), "result-is-json", "are not JSON: Unterminated"),
    Row("a byte order mark", lambda c: c.is_stored_as(b"\xef\xbb\xbf{}"), "result-is-json", "UTF-8 BOM"),
    Row("two documents", lambda c: c.is_stored_as(b"{}{}"), "result-is-json", "Extra data"),
    Row("nested without end", lambda c: c.is_stored_as(b"[" * 60_000), "result-is-json", "nested too deeply"),
    Row(
        "an endless number",
        lambda c: c.is_stored_as(b"[" + b"1" * 5_000 + b"]"),
        "result-is-json",
        "5002 characters",
    ),
    Row("a list", lambda c: c.is_stored_as(b"[1, 2]"), "result-is-an-object", "the document is [1, 2]"),
    Row("null", lambda c: c.is_stored_as(b"null"), "result-is-an-object", "the document is null"),
    Row(
        "a key twice",
        lambda c: c.has_text('"sliceId": 12', '"sliceId": 12, "sliceId": 13'),
        "keys-are-unique",
        "sliceId is there twice: 12 and 13",
    ),
    Row(
        "a partition's key twice",
        lambda c: c.has_text('"skipped": {}', '"skipped": {}, "skipped": {"x": 0}'),
        "keys-are-unique",
        'skipped is there twice: {} and {"x": 0}',
    ),
    Row(
        "not a number",
        lambda c: c.has_text('"sliceId": 12', '"sliceId": NaN'),
        "numbers-are-finite",
        "NaN is not",
    ),
    Row(
        "infinity",
        lambda c: c.has_text('"sliceId": 12', '"sliceId": -Infinity'),
        "numbers-are-finite",
        "-Infinity is not",
    ),
    Row(
        "beyond",
        lambda c: c.has_text('"sliceId": 12', '"sliceId": 1e999'),
        "numbers-are-finite",
        '"1e999" is beyond',
    ),
    Row(
        "another version",
        lambda c: c.says(schemaVersion=2),
        "schema-version-is-known",
        "is 2, and 1 can be read",
    ),
    Row(
        "a version as text",
        lambda c: c.says(schemaVersion="1"),
        "schema-version-is-known",
        'is "1", and 1 can be',
    ),
    Row(
        "true as version",
        lambda c: c.says(schemaVersion=True),
        "schema-version-is-known",
        "is true, and 1 can be",
    ),
    Row(
        "no version",
        lambda c: c.without("schemaVersion"),
        "schema-version-is-known",
        "is missing, and 1 can be read",
    ),
]

MISSHAPEN = [
    *(
        Row(f"without {field}", lambda c, field=field: c.without(field), "schema", f"{field} is missing")
        for field in (
            "jobId",
            "status",
            "startedAt",
            "recordsRead",
            "runId",
            "planSha256",
            "taskArn",
            "partitions",
        )
    ),
    Row(
        "a partition without fence",
        lambda c: c.lists_without(1, "fence"),
        "schema",
        "partitions[1].fence is missing",
    ),
    Row(
        "a partition without cursor",
        lambda c: c.lists_without(0, "cursor"),
        "schema",
        "partitions[0].cursor is missing",
    ),
    Row(
        "a count as text",
        lambda c: c.says(recordsRead="730"),
        "schema",
        'recordsRead is "730", and should be a valid',
    ),
    Row(
        "true as count",
        lambda c: c.says(recordsWritten=True),
        "schema",
        "recordsWritten is true, and should be a valid",
    ),
    Row(
        "null as count",
        lambda c: c.says(recordsUsed=None),
        "schema",
        "recordsUsed is null, and should be a valid",
    ),
    Row(
        "a broken count",
        lambda c: c.says(recordsRead=729.5),
        "schema",
        "recordsRead is 729.5, and should be a valid",
    ),
    Row(
        "a negative count",
        lambda c: c.says(recordsSkipped=-1),
        "schema",
        "is -1, and should be greater than or equal to 0",
    ),
    Row(
        "a count nobody can hold",
        lambda c: c.says(recordsRead=2**53),
        "schema",
        "less than or equal to 9007199254740991",
    ),
    Row(
        "a negative partition count",
        lambda c: c.lists(1, recordsRead=-10),
        "schema",
        "partitions[1].recordsRead is -10",
    ),
    Row(
        "launch 0",
        lambda c: c.says(launch=0),
        "schema",
        "launch is 0, and should be greater than or equal to 1",
    ),
    Row(
        "fence 0", lambda c: c.lists(0, fence=0), "schema", "partitions[0].fence is 0, and should be greater"
    ),
    Row(
        "an unknown status",
        lambda c: c.says(status="DONE"),
        "schema",
        "status is \"DONE\", and should be 'SUCCEEDED'",
    ),
    Row(
        "a status of partitions",
        lambda c: c.says(status="REJECTED"),
        "schema",
        'status is "REJECTED", and should be',
    ),
    Row(
        "an unknown partition status",
        lambda c: c.lists(0, status="OK"),
        "schema",
        'partitions[0].status is "OK"',
    ),
    Row("an unknown phase", lambda c: c.says(phase="Apply"), "schema", 'phase is "Apply", and should be'),
    Row(
        "an unknown field",
        lambda c: c.says(rows=45),
        "schema",
        "rows is 45, and the contract has no such field",
    ),
    Row(
        "a name as in Python",
        lambda c: c.says(slice_id=12),
        "schema",
        "slice_id is 12, and the contract has no such",
    ),
    Row(
        "a misspelt field",
        lambda c: c.lists(0, recordRead=1),
        "schema",
        "partitions[0].recordRead is 1, and the contract",
    ),
    Row(
        "no zone",
        lambda c: c.says(startedAt="2026-07-06T01:00:00"),
        "schema",
        '"2026-07-06T01:00:00", and should be a date',
    ),
    Row(
        "seconds since 1970",
        lambda c: c.says(startedAt=1783299600),
        "schema",
        "startedAt is 1783299600, and should be",
    ),
    Row(
        "the same as text",
        lambda c: c.says(startedAt="1783299600"),
        "schema",
        'startedAt is "1783299600", and should be',
    ),
    Row(
        "no such day",
        lambda c: c.says(finishedAt="2026-02-30T01:00:00Z"),
        "schema",
        'finishedAt is "2026-02-30T01:00:00Z"',
    ),
    Row(
        "a short hash",
        lambda c: c.says(planSha256="abc"),
        "schema",
        'planSha256 is "abc", and should match pattern',
    ),
    Row(
        "a hash and a line feed",
        lambda c: c.says(planSha256=PLAN + "\n"),
        "schema",
        "and should match pattern",
    ),
    Row(
        "an image tag",
        lambda c: c.says(imageDigest="flights:latest"),
        "schema",
        'imageDigest is "flights:latest"',
    ),
    Row(
        "a cursor without version",
        lambda c: c.lists(0, cursor="48210"),
        "schema",
        'partitions[0].cursor is "48210"',
    ),
    Row(
        "a cursor as number",
        lambda c: c.lists(0, cursor=48210),
        "schema",
        "partitions[0].cursor is 48210, and should",
    ),
    Row(
        "partitions as object",
        lambda c: c.says(partitions={}),
        "schema",
        "partitions is {}, and should be a valid array",
    ),
    Row("a partition as text", lambda c: c.says(partitions=[FIFTH]), "schema", f'partitions[0] is "{FIFTH}"'),
    Row(
        "an empty partition id",
        lambda c: c.lists(0, partitionId=""),
        "schema",
        'partitionId is "", and should have at least',
    ),
    Row(
        "a reason without figure",
        lambda c: c.lists(0, skipped={"late": "3"}),
        "schema",
        'skipped.late is "3", and should',
    ),
    Row(
        "an output without hash",
        lambda c: c.lists(0, outputs=[{"location": OUTPUT, "records": 45}]),
        "schema",
        "partitions[0].outputs[0].sha256 is missing",
    ),
    Row(
        "an error as text",
        lambda c: c.lists(0, error="boom"),
        "schema",
        'partitions[0].error is "boom", and should',
    ),
    Row(
        "warnings as text",
        lambda c: c.says(warnings="none"),
        "schema",
        'warnings is "none", and should be a valid array',
    ),
    Row(
        "a job of another form",
        lambda c: c.says(jobId="Flights Summary"),
        "schema",
        'jobId is "Flights Summary"',
    ),
]
