"""The options of Step Functions Local that still make sense ([dg:sfn-local]), and calls by botocore."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest
from moto import mock_aws

from trueup.local.serving import listen
from trueup.local.stepfunctions.__main__ import main, parse
from trueup.local.stepfunctions.integrations.calls import BotoCalls


def test_the_variables_of_step_functions_local_are_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "AWS_ACCOUNT_ID": "123456789012",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "WAIT_TIME_SCALE": "0.5",
        "LAMBDA_ENDPOINT": "http://lambda",
        "SQS_ENDPOINT": "http://sqs",
        "SAGE_MAKER_ENDPOINT": "http://sagemaker",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    options = parse(["--endpoint", "sqs=http://mine"])
    assert ("123456789012", "eu-west-1", 0.5) == (options.account, options.region, options.scale)
    expected = {"lambda": "http://lambda", "sqs": "http://mine", "sagemaker": "http://sagemaker"}
    assert expected == dict(options.endpoints)


def test_the_command_line_comes_before_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAIT_TIME_SCALE", "0.5")
    assert 0.1 == parse(["--time-scale", "0.1"]).scale


def test_the_options_of_step_functions_local_are_taken_too() -> None:
    options = parse(["--aws-account", "1", "--aws-region", "eu-west-1", "--wait-time-scale", "0.1",
                     "--glue-endpoint", "http://glue"])  # fmt: skip
    assert ("1", "eu-west-1", 0.1) == (options.account, options.region, options.scale)
    assert {"glue": "http://glue"} == dict(options.endpoints)


@mock_aws
def test_lists_of_objects_show_no_encoding_that_nobody_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    calls = BotoCalls({}, "us-east-1", threads=1)

    async def listed() -> set[str]:
        await calls.call("s3", "createBucket", {"Bucket": "bucket"})
        await calls.call("s3", "putObject", {"Bucket": "bucket", "Key": "a b", "Body": "x"})
        answer = await calls.call("s3", "listObjectsV2", {"Bucket": "bucket"})
        assert ["a b"] == [entry["Key"] for entry in answer.output["Contents"]]
        return set(answer.output)

    try:
        assert "EncodingType" not in asyncio.run(listed())
    finally:
        calls.close()


@pytest.mark.parametrize("port", ["taken", "65536", "-1"])
def test_a_port_that_cannot_be_had_is_told(capsys: pytest.CaptureFixture[str], port: str) -> None:
    with closing(listen()) as taken:
        given = str(taken.getsockname()[1]) if port == "taken" else port
        with pytest.raises(SystemExit, match="2"):
            main([f"--port={given}"])
    assert f"Nobody can listen at 127.0.0.1:{given}" in capsys.readouterr().err
