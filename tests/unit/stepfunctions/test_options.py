"""The options of Step Functions Local that still make sense ([dg:sfn-local]), and calls by botocore."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from moto import mock_aws

from trueup.local.serving import listen
from trueup.local.stepfunctions.__main__ import main, parse
from trueup.local.stepfunctions.integrations.calls import BotoCalls
from trueup.local.stepfunctions.integrations.port import ServiceFailure


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


def test_a_variable_that_is_empty_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """As files for `docker run --env-file` and compose leave them."""
    for name in (
        "AWS_ACCOUNT_ID",
        "AWS_DEFAULT_REGION",
        "WAIT_TIME_SCALE",
        "LAMBDA_ENDPOINT",
        "SFN_MOCK_CONFIG",
    ):
        monkeypatch.setenv(name, "")
    options = parse([])
    assert ("000000000000", "us-east-1", 1.0) == (options.account, options.region, options.scale)
    assert (None, {}) == (options.mocks, dict(options.endpoints))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--region", "us/east:1"], "a region such as us-east-1 is needed"),
        (["--account", "abc"], "up to 12 digits are needed"),
        (["--lambda-endpoint", "127.0.0.1:4566"], "a URL such as http://127.0.0.1:4566 is needed"),
        (["--endpoint", "dynamodb="], "--endpoint dynamodb: a URL such as"),
        (["--endpoint", "*=http://:80"], "--endpoint *: a URL such as"),
        (["--endpoint", "*=http://a:b"], "--endpoint *: a URL such as"),
        (["--endpoint", "dynamo=http://127.0.0.1"], "a service by botocore's name, such as dynamodb"),
        (["--endpoint", "dynamodb"], "--endpoint takes SERVICE=URL"),
    ],
)
def test_an_option_that_makes_no_sense_is_told(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(arguments)
    assert said in capsys.readouterr().err


def test_the_options_of_step_functions_local_are_taken_too() -> None:
    options = parse(["--aws-account", "1", "--aws-region", "eu-west-1", "--wait-time-scale", "0.1",
                     "--glue-endpoint", "http://glue", "--step-functions-endpoint", "http://me"])  # fmt: skip
    assert ("1", "eu-west-1", 0.1) == (options.account, options.region, options.scale)
    assert {"glue": "http://glue"} == dict(options.endpoints)


@mock_aws
def test_lists_of_objects_show_no_encoding_that_nobody_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    calls = BotoCalls({}, "us-east-1", threads=1, aws=True)

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


@mock_aws
def test_errors_of_sqs_bring_along_their_name_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    calls = BotoCalls({}, "us-east-1", threads=1, aws=True)
    message = {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/1/none", "MessageBody": "m"}
    try:
        with pytest.raises(ServiceFailure) as refused:
            asyncio.run(calls.call("sqs", "sendMessage", message))
    finally:
        calls.close()
    assert ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist") == (
        refused.value.code,
        refused.value.shape,
    )


@pytest.mark.parametrize("port", ["taken", "65536", "-1"])
def test_a_port_that_cannot_be_had_is_told(capsys: pytest.CaptureFixture[str], port: str) -> None:
    with closing(listen()) as taken:
        given = str(taken.getsockname()[1]) if port == "taken" else port
        with pytest.raises(SystemExit, match="2"):
            main([f"--port={given}"])
    assert f"Nobody can listen at 127.0.0.1:{given}" in capsys.readouterr().err


@pytest.mark.parametrize("scale", ["abc", "0", "-1", "nan", "inf"])
@pytest.mark.parametrize("place", ["--time-scale", "--timeout-scale", "WAIT_TIME_SCALE"])
def test_a_scale_that_is_none_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scale: str, place: str
) -> None:
    monkeypatch.setenv("WAIT_TIME_SCALE", scale if place == "WAIT_TIME_SCALE" else "1")
    with pytest.raises(SystemExit, match="2"):
        parse([] if place == "WAIT_TIME_SCALE" else [f"{place}={scale}"])
    assert f"a number above 0 is needed (also in WAIT_TIME_SCALE), not '{scale}'" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "{", '{"StateMachines": []}', "\xe9"])
def test_a_mock_file_that_cannot_be_read_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    file = tmp_path / "mocks.json"
    if content is not None:
        file.write_text(content, "latin-1")
    with pytest.raises(SystemExit, match="2"):
        main(["--port=0", "--mocks", str(file)])
    told = capsys.readouterr()
    assert f"the mock configuration {file}" in told.err
    assert "" == told.out


def call(calls: BotoCalls) -> None:
    try:
        asyncio.run(calls.call("dynamodb", "listTables", {}))
    finally:
        calls.close()


@pytest.mark.parametrize("region", ["us-east-1", "cn-north-1", "us-gov-west-1"])
def test_aws_is_not_called_unless_told(monkeypatch: pytest.MonkeyPatch, region: str) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ServiceFailure, match=r"is AWS itself: give --endpoint dynamodb=URL, or --aws"):
        call(BotoCalls({"s3": "http://127.0.0.1:1"}, region, threads=1))


def test_an_endpoint_in_the_environment_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
    with pytest.raises(ServiceFailure, match=r"127\.0\.0\.1:1 failed"):
        call(BotoCalls({}, "us-east-1", threads=1))


def test_aws_is_called_when_told() -> None:
    assert not parse([]).aws
    assert parse(["--aws"]).aws
