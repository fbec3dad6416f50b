"""What a Distributed Map leaves behind: files with a manifest, or outputs in the state.

Where a test names no source: [dg:input-output-resultwriter].
"""

from __future__ import annotations

import json

from .distributed import BAD, GOOD, SOME_FAIL, Bucket, distributed
from .harness import execute, passing

WRITER = {"Resource": "arn:aws:states:::s3:putObject", "Parameters": {"Bucket": "b", "Prefix": "out"}}


def test_a_result_writer_leaves_files_and_a_manifest() -> None:
    # Recorded on AWS: test_map_state_result_writer.
    services = Bucket()
    ran = execute(
        distributed(*SOME_FAIL, ResultWriter=WRITER, ToleratedFailurePercentage=100), [GOOD, BAD], services
    )
    key = ran.output["ResultWriterDetails"]["Key"]
    folder = "out/" + ran.output["MapRunArn"].rpartition(":")[2]
    assert f"{folder}/manifest.json" == key
    manifest = json.loads(services.files[key])
    assert {"FAILED": 1, "PENDING": 0, "SUCCEEDED": 1} == {
        n: len(f) for n, f in manifest["ResultFiles"].items()
    }
    failed = json.loads(services.files[f"{folder}/FAILED_0.json"])[0]
    assert ("Bad", "luck", '{"bad":1}') == (failed["Error"], failed["Cause"], failed["Input"])
    assert ("REDRIVABLE_BY_MAP_RUN", 0) == (failed["RedriveStatus"], failed["RedriveCount"])
    assert "RedriveStatusReason" not in failed
    [succeeded] = json.loads(services.files[f"{folder}/SUCCEEDED_0.json"])
    assert "NOT_REDRIVABLE" == succeeded["RedriveStatus"]
    assert "Execution is SUCCEEDED and cannot be redriven" == succeeded["RedriveStatusReason"]
    assert sorted(failed) == list(failed)
    assert (
        len(services.files[f"{folder}/SUCCEEDED_0.json"]) == manifest["ResultFiles"]["SUCCEEDED"][0]["Size"]
    )


def test_results_are_written_also_when_the_run_fails_with_what_was_never_started() -> None:
    services = Bucket()
    ran = execute(distributed(*SOME_FAIL, ResultWriter=WRITER, MaxConcurrency=1), [BAD, GOOD], services)
    assert "FAILED" == ran.status
    assert {"FAILED_0.json", "PENDING_0.json", "manifest.json"} == {
        key.rpartition("/")[2] for key in services.files
    }


def test_results_over_256_kib_need_a_writer() -> None:
    big = passing(Result="x" * 100_000)
    assert "States.DataLimitExceeded" == execute(distributed(("P", big)), [1, 2, 3]).error
    services = Bucket()
    assert "SUCCEEDED" == execute(distributed(("P", big), ResultWriter=WRITER), [1, 2, 3], services).status
