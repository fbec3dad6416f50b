"""What `trueup up` hands to the stack, and what it says of options that make no sense."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from trueup.cli import main
from trueup.errors import LocalStackError
from trueup.local.aws import LEADS_TO
from trueup.local.faults import served
from trueup.local.stack import Options, _ecs_options


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options that a stack was asked for; none is started."""
    asked: list[Options] = []

    def stack(options: Options, note: object) -> None:
        asked.append(options)
        raise LocalStackError("enough")

    monkeypatch.setattr("trueup.local.stack.stack", stack)
    monkeypatch.setattr("trueup.cli.up.leave_on_sigterm", lambda: None)
    for name in ("SFN_MOCK_CONFIG", "WAIT_TIME_SCALE"):
        monkeypatch.delenv(name, raising=False)
    return asked


def _mocks(folder: Path) -> Path:
    file = folder / "mocks.json"
    file.write_text(json.dumps({"StateMachines": {}, "MockedResponses": {}}))
    return file


def test_images_mocks_and_the_scale_are_handed_on(tmp_path: Path, handed: list[Options]) -> None:
    file = _mocks(tmp_path)
    images = [f"--image=a={tmp_path}", f"--image=registry.example/b:1={tmp_path}"]
    main(["up", *images, "--mocks", str(file), "--time-scale", "0.5"])
    (options,) = handed
    assert {"a": tmp_path, "registry.example/b:1": tmp_path} == options.images
    assert (file, 0.5, 1.0) == (options.mocks, options.scale, options.timeouts)


def test_variables_of_step_functions_local_are_the_defaults(
    tmp_path: Path, handed: list[Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    """[dg:sfn-local]"""
    monkeypatch.setenv("SFN_MOCK_CONFIG", str(_mocks(tmp_path)))
    monkeypatch.setenv("WAIT_TIME_SCALE", "0.25")
    main(["up"])
    main(["up", "--time-scale", "2"])
    assert [0.25, 2.0] == [one.scale for one in handed]
    assert {tmp_path / "mocks.json"} == {one.mocks for one in handed}


def test_empty_variables_are_not_set(handed: list[Options], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SFN_MOCK_CONFIG", "WAIT_TIME_SCALE"):
        monkeypatch.setenv(name, "")
    main(["up"])
    assert [(None, 1.0)] == [(one.mocks, one.scale) for one in handed]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--image", "a"], "--image takes NAME=FOLDER with a folder that is there, not 'a'."),
        (["--image", "=."], "--image takes NAME=FOLDER with a folder that is there, not '=.'."),
        (["--image", "a=/not/there"], "a folder that is there, not 'a=/not/there'."),
        (["--image", "a=.", "--containers"], "--image is for tasks that are processes."),
        (["--time-scale", "0"], "--time-scale takes a number above 0"),
        (["--time-scale", "nan"], "--time-scale takes a number above 0"),
        (["--time-scale", "inf"], "--time-scale takes a number above 0"),
        (["--mocks", "/not/there"], "The mock configuration /not/there cannot be read"),
        (["--mocks", __file__], "Correct the file that --mocks, or SFN_MOCK_CONFIG, names."),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(
    words: list[str], said: str, handed: list[Options], capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["up", *words])
    assert said in capsys.readouterr().err
    assert [] == handed


def test_options_of_fargate_images_and_a_path_reach_the_ecs_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/of/the/shell")
    options = Options(images={"mine": tmp_path}, fargate={"unseen": 0.5, "kept": 60})
    own = {LEADS_TO: "http://127.0.0.1:1", "AWS_ENDPOINT_URL_ECS": "http://127.0.0.1:2"}
    with served() as faults:
        told = _ecs_options(options, "http://127.0.0.1:3", own, {}, faults)
    assert (0.5, 60, 0.0) == (told.unseen, told.kept, told.cold_start)
    assert tmp_path == asyncio.run(told.images.pull("mine")).folder
    # `python` is the one of the stack, with boto3.
    assert f"{Path(sys.executable).parent}:/of/the/shell" == told.environment["PATH"]
    assert own.items() <= told.environment.items()
    assert own[LEADS_TO] == told.states
