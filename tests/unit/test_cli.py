"""The command line: what it prints, how it exits, and that bad input creates nothing."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import trueup.cli
from trueup.cli import COMMANDS, main
from trueup.cli.new import USED, class_name, module_name
from trueup.errors import ArtifactMissing, UsageError
from trueup.jobfile import catalogue, loads

from .cli_cases import CODE, JOB, contents

VERSION = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"]
WINDOW = ["--from", "2013-01-01", "--to", "2014-01-01"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with one good job, and the working directory."""
    monkeypatch.chdir(tmp_path)
    write("flights", JOB)
    return tmp_path


def write(folder, text, code=CODE):
    home = Path("containers", folder)
    home.mkdir(parents=True)
    (home / "job.yaml").write_text(text, encoding="utf-8")
    (home / "flights.py").write_text(code, encoding="utf-8")


def test_an_estimate_says_partitions_slices_and_dollars(project, capsys):
    assert 0 == main(["estimate", "flights-summary", *WINDOW])
    told = capsys.readouterr().out
    assert "flights-summary: 365 partitions in 16 slices" in told
    assert "from date=2013-01-01 to date=2013-12-31" in told
    assert "Guard none: cannot prevent a task that should be dead writing over newer data." in told


def test_an_estimate_shows_what_would_be_read(project, capsys):
    monthly = JOB.replace("  by: date\n", '  by: date\n  unit: month\n  input: "tickets/{label}.csv"\n')
    Path("containers/flights/job.yaml").write_text(monthly, encoding="utf-8")
    assert 0 == main(["estimate", "flights-summary", *WINDOW])
    assert "reading from tickets/2013-01.csv to tickets/2013-12.csv\n" in capsys.readouterr().out


def test_an_estimate_in_json_is_one_document(project, capsys):
    assert 0 == main(["estimate", "flights-summary", *WINDOW, "--param", "most=5", "--dry-run", "--json"])
    told = json.loads(capsys.readouterr().out)
    # 16 tasks: 8 x 16 + 40 transitions
    assert (365, 16, 168, True) == (told["partitions"], told["slices"], told["transitions"], told["dryRun"])


def test_keys_come_from_the_option_or_a_file(project, capsys):
    Path("days.txt").write_text("2013-01-05\n\ndate=2013-01-07\n", encoding="utf-8")
    assert 0 == main(["estimate", "flights-summary", "--keys", "@days.txt", "--json"])
    assert 0 == main(["estimate", "flights-summary", "--keys", "2013-01-05,2013-01-07", "--json"])
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == second
    assert (2, "date=2013-01-07") == (first["partitions"], first["last"])


def test_objects_can_be_estimated_by_their_keys_only(project, capsys):
    text = JOB.replace("flights-summary", "objects").replace(
        "by: date", 'by: s3-prefix\n  prefix: "s3://b/in/"'
    )
    write("objects", text)
    assert 0 == main(["estimate", "objects", "--keys", "a.csv", "--json"])
    assert "object=a.csv" == json.loads(capsys.readouterr().out)["first"]
    assert 2 == main(["estimate", "objects"])
    assert "Give keys" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["estimate", "flights-sumary", *WINDOW],
            "no job is called 'flights-sumary'. Did you mean `flights-summary`?",
        ),
        (["estimate", "flights-summary"], "from: this job works dates, so it needs to know which."),
        (
            ["estimate", "flights-summary", *WINDOW, "--param", "most=many"],
            'params.most: "many" is not of type integer.',
        ),
        (
            ["estimate", "flights-summary", *WINDOW, "--param", "msot=1"],
            "params.msot: flights-summary has no such parameter. Did",
        ),
        (
            ["estimate", "flights-summary", *WINDOW, "--param", "most"],
            "--param: 'most' is not a parameter. Write it as",
        ),
        (
            ["estimate", "flights-summary", *WINDOW, "--param", "most=1", "--param", "most=2"],
            "--param: most is given twice.",
        ),
        (
            ["estimate", "flights-summary", "--from", "2014-01-01", "--to", "2013-01-01"],
            "to: the window from 2014-01-01 to",
        ),
        (
            ["estimate", "flights-summary", "--from", "01.02.2013", "--to", "2013-03-01"],
            "from: '01.02.2013' is not a day.",
        ),
        (["estimate", "flights-summary", "--from", "2013-01-01"], "from: a window needs both ends"),
        (["estimate", "flights-summary", "--keys", "2013-02-31"], "keys: '2013-02-31' is not a day."),
        (["estimate", "flights-summary", "--keys", "@none.txt"], "--keys: none.txt cannot be read"),
        (["estimate", "flights-summary", "--form", "2013-01-01"], "No such option: --form"),
        (["estimate"], "Missing argument"),
        (["estimat"], "No such command"),
        (["validate", "nowhere"], "nowhere: it cannot be read: No such file or directory."),
        (["new", "Flights"], "'Flights' cannot name a job. Use lower case letters"),
        (["new", "../x"], "'../x' cannot name a job."),
        (["new", "flights"], "is there already. Choose another name"),
    ],
)
def test_bad_input_is_one_message_exit_2_and_nothing_created(project, capsys, arguments, message):
    before = contents(project)
    assert 2 == main(arguments)
    told = capsys.readouterr()
    assert message in told.err
    assert "Traceback" not in told.err
    assert "" == told.out
    assert before == contents(project)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("target:", "tarket:", "job.yaml:10: tarket: there is no such field. Did you mean `target`?"),
        (
            "guard: none",
            "guard: none\nbatch: {maximumSeconds: 60}",
            "job.yaml:13: batch.maximumSeconds: a batch may take 60 s",
        ),
        (
            "by: date",
            "by: date\n  timezone: Mars",
            "job.yaml:10: partitions.timezone: there is no time zone 'Mars'.",
        ),
        ("flights:Summary", "flights:Sumary", "job.yaml:2: class: "),
        ("flights:Summary", "flihgts:Summary", "job.yaml:2: class: "),
        ("flights:Summary", "flights:Reader", "write"),
        ("flights:Summary", "flights:Other", "Backfill"),
        ("by: date", "by: job", "job.yaml:2: class: flights:Summary has no `partitions(window)`"),
    ],
)
def test_a_bad_job_file_is_one_message_exit_2_and_nothing_created(project, capsys, old, new, message):
    file = Path("containers/flights/job.yaml")
    file.write_text(JOB.replace(old, new), encoding="utf-8")
    before = contents(project)
    assert 2 == main(["validate"])
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.startswith("containers/flights/job.yaml:")
    assert 2 == main(["validate", str(file), "--json"])
    assert not json.loads(capsys.readouterr().out)["valid"]
    assert before == contents(project)


def test_a_module_that_breaks_while_it_is_imported_is_told_with_its_job_file(project, capsys):
    Path("containers/flights/flights.py").write_text("1 / 0\n", encoding="utf-8")
    assert 2 == main(["validate"])
    assert (
        "flights:Summary cannot be imported: ZeroDivisionError: division by zero." in capsys.readouterr().err
    )


def test_jobs_whose_modules_share_a_name_are_each_imported_from_their_own_folder(project, capsys):
    write("rows", JOB.replace("flights-summary", "flights-rows"), CODE.replace("Summary", "Rows"))
    assert 2 == main(["validate"])
    assert "containers/rows/job.yaml:2" in capsys.readouterr().err
    Path("containers/rows/flights.py").write_text(CODE, encoding="utf-8")
    assert 0 == main(["validate"])
    assert 2 == len(capsys.readouterr().out.splitlines())


def test_two_jobs_of_one_name_are_refused(project, capsys):
    write("again", JOB)
    assert 2 == main(["validate"])
    assert "flights/job.yaml: name: " in capsys.readouterr().err


@pytest.mark.parametrize("path", [".", "containers", "containers/flights", "containers/flights/job.yaml"])
def test_job_files_are_found_wherever_one_stands(project, capsys, path):
    assert 0 == main(["validate", path])
    assert "containers/flights/job.yaml: flights-summary is valid\n" == capsys.readouterr().out


def test_a_folder_without_job_files_is_told(project, capsys):
    Path("empty").mkdir()
    assert 2 == main(["validate", "empty"])
    assert "there are no job files under empty." in capsys.readouterr().err


CHECK = """\
name: summary-check
kind: reconcile
parameters:
  type: object
  required: [table]
  properties:
    table: {type: string}
truth: {kind: postgres, table: flights}
target: {kind: postgres, table: "{table}"}
key: [id]
columns: {id: integer}
"""


@pytest.mark.parametrize(
    ("verify", "told"),
    [
        ("{job: summary-check, params: {table: t}}", None),
        (
            "{job: summary-chek}",
            "verify: there is no reconcile job 'summary-chek'. Did you mean `summary-check`?",
        ),
        ("{job: flights-summary}", "verify: flights-summary is a backfill, which compares nothing. Known:"),
        ("{job: summary-check}", "verify: summary-check needs table. Add it: `params: {table: "),
        (
            "{job: summary-check, params: {tabel: t}}",
            "verify: summary-check has no parameter tabel. Did you mean",
        ),
    ],
)
def test_what_verifies_a_job_has_to_be_there_and_take_what_it_gets(project, capsys, verify, told):
    write("check", CHECK)
    Path("containers/flights/job.yaml").write_text(f"{JOB}verify: {verify}\n", encoding="utf-8")
    for path in (".", "containers/flights", "containers/flights/job.yaml"):
        assert (2 if told else 0) == main(["validate", path])
        said = capsys.readouterr()
        if told:
            assert f"containers/flights/job.yaml:13: {told}" in said.err
    if told:
        with pytest.raises(UsageError, match=re.escape(told)):
            catalogue(project)
    else:
        assert {"flights-summary", "summary-check"} == set(catalogue(project))


def test_what_verifies_a_job_may_be_deployed_from_elsewhere(project):
    verify = "verify: {job: summary-check, params: {table: t}}\n"
    Path("containers/flights/job.yaml").write_text(JOB + verify, encoding="utf-8")
    assert ["flights-summary"] == list(catalogue(project, {"summary-check": loads(CHECK)}))


# trueup new


def test_a_new_job_is_valid_and_its_test_passes_at_once(project, capsys):
    assert 0 == main(["new", "my-orders"])
    assert 0 == main(["validate", "containers/my-orders"])
    assert "my-orders is valid" in capsys.readouterr().out
    pytest_passes("tests/test_my_orders.py")


def pytest_passes(file, **environment):
    """Run a file of tests in a process of its own."""
    words = ["-q", "-W", "error", "-p", "no:cacheprovider", file]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert 0 == done.returncode, done.stdout + done.stderr


def test_the_test_of_a_new_job_reaches_no_stack_that_the_shell_names(project):
    assert 0 == main(["new", "my-orders"])
    reached = [
        "def test_what_is_reached():",
        "    assert [] == [name for name in os.environ if name.startswith('AWS_ENDPOINT_URL')]",
    ]
    file = Path("tests/test_my_orders.py")
    file.write_text("\n".join([file.read_text(), "", *reached, ""]), encoding="utf-8")
    stack = "http://127.0.0.1:9"
    pytest_passes(str(file), AWS_ENDPOINT_URL=stack, AWS_ENDPOINT_URL_DYNAMODB=stack)


def test_a_new_job_never_overwrites_its_test(project, capsys):
    Path("tests").mkdir()
    Path("tests/test_my_orders.py").write_text("mine", encoding="utf-8")
    before = contents(project)
    assert 2 == main(["new", "my-orders"])
    assert "test_my_orders.py is there already" in capsys.readouterr().err
    assert before == contents(project)


def test_a_new_job_that_cannot_be_written_leaves_nothing_behind(project, capsys):
    Path("tests").write_text("a file where a folder should be", encoding="utf-8")
    before = contents(project)
    assert 2 == main(["new", "my-orders"])
    assert "the job cannot be written" in capsys.readouterr().err
    assert before == contents(project)


def test_a_new_job_whose_test_cannot_be_written_is_taken_away_again(project, capsys, monkeypatch):
    opened = Path.open

    def full(path, mode="r", **more):
        if mode == "x":
            raise OSError("no space left on device")
        return opened(path, mode, **more)

    monkeypatch.setattr(Path, "open", full)
    before = contents(project)
    assert 2 == main(["new", "my-orders"])
    assert "no space left on device" in capsys.readouterr().err
    assert before == contents(project)


def test_a_new_job_in_json_lists_its_files(project, capsys):
    assert 0 == main(["new", "my-orders", "--json"])
    files = json.loads(capsys.readouterr().out)["files"]
    assert ["Dockerfile", "job.yaml", "my_orders.py", "test_my_orders.py"] == [
        Path(file).name for file in files
    ]
    assert all(Path(file).is_file() for file in files)


@pytest.mark.parametrize(
    ("name", "module", "class_"),
    [
        ("flights-summary", "flights_summary", "FlightsSummary"),
        ("2024-fix", "job_2024_fix", "Job2024Fix"),
        ("json", "json_job", "Json"),
        ("pytest", "pytest_job", "Pytest"),
        ("none", "none", "JobNone"),
        ("class", "class_job", "Class"),
        ("trueup", "trueup_job", "Trueup"),
        ("conftest", "conftest_job", "Conftest"),
        ("local-run", "local_run", "JobLocalRun"),
        ("value-error", "value_error", "JobValueError"),
    ],
)
def test_modules_and_classes_are_named_so_that_they_hide_nothing(name, module, class_):
    assert (module, class_) == (module_name(name), class_name(name))


def test_no_class_hides_what_its_files_import(project):
    main(["new", "my-orders"])
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in project.rglob("*my_orders.py")]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imports for alias in node.names} - {"MyOrders"}
    assert 2 == len(trees)
    assert USED == {name for name in names if name[0].isupper()}


NO_NAMES = ["", "-", "-a", "a-", "a_b", "A", "Flights", "a b", "a.b", "ä", "\N{FULLWIDTH DIGIT ONE}", "a\n"]
NO_NAMES += ["a" * 41, ".", "..", "/", "a/b", "a\\b", "../a", "/tmp/a", "~", "a\0b"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_cannot_be_one_is_refused_and_nothing_is_created(project, capsys, name):
    before = contents(project)
    assert 2 == main(["new", "--", name])
    told = capsys.readouterr()
    assert f"{name!r} cannot name a job. Use lower case letters, digits and dashes, at most 40" in told.err
    assert ("", 1, before) == (told.out, len(told.err.splitlines()), contents(project))


@pytest.mark.parametrize("folder", ["containers/flights/job.yaml", "containers/flights/job.yaml/x"])
def test_a_folder_that_is_a_file_is_refused(project, capsys, folder):
    before = contents(project)
    assert 2 == main(["new", "my-orders", "--in", folder])
    told = capsys.readouterr()
    assert "the job cannot be written: " in told.err
    assert ("", 1, before) == (told.out, len(told.err.splitlines()), contents(project))


def test_the_longest_name_makes_a_job(project):
    assert 0 == main(["new", "a" * 40])
    assert 0 == main(["validate", f"containers/{'a' * 40}"])


# How it exits


def test_it_says_its_version(capsys):
    assert 0 == main(["--version"])
    assert f"trueup {VERSION}\n" == capsys.readouterr().out


def failing(monkeypatch, error):
    def command(**_):
        raise error

    monkeypatch.setattr(trueup.cli, "app", command)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            ArtifactMissing("There is no object at k.", remedy="Plan again."),
            1,
            "There is no object at k. Plan again.\n",
        ),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
        (
            KeyError("boom"),
            1,
            "trueup met an error that it did not expect (KeyError: 'boom'). "
            f"That is a fault of trueup {VERSION}: run the command again with TRUEUP_DEBUG=1, and report "
            "what it prints together with the command and this version.\n",
        ),
    ],
)
def test_no_traceback_reaches_a_person(monkeypatch, capsys, error, code, message):
    monkeypatch.delenv("TRUEUP_DEBUG", raising=False)
    failing(monkeypatch, error)
    assert code == main([])
    told = capsys.readouterr().err
    assert told.startswith(message)
    assert 1 == len(told.splitlines())


def test_the_details_are_there_when_asked_for(monkeypatch, capsys):
    monkeypatch.setenv("TRUEUP_DEBUG", "1")
    failing(monkeypatch, KeyError("boom"))
    assert 1 == main([])
    assert "Traceback" in capsys.readouterr().err


def test_help_imports_nothing_that_only_commands_need():
    code = "import sys; from trueup.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stderr.split())
    assert "estimate" in done.stdout
    assert set() == loaded & {"boto3", "botocore", "jsonschema", "yaml", "trueup.planning", "trueup.local"}


# Completion, by the words that a shell and Typer exchange


def completed(shell, **more):
    """What the program answers to a shell that asks it, in a process of its own."""
    environment = {**os.environ, "_TRUEUP_COMPLETE": f"complete_{shell}", **more}
    done = subprocess.run(
        [sys.executable, "-c", "from trueup.cli import main; main()"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", {"COMP_WORDS": "trueup st", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "trueup st"}),
        (
            "fish",
            {"_TYPER_COMPLETE_ARGS": "trueup st", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
        ),
    ],
)
def test_a_shell_completes_commands(shell, asked):
    offered = set(re.findall(r"\w+", completed(shell, **asked)))
    assert {"start", "status"} == offered & set(COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_printed(shell):
    command = [sys.executable, "-c", "import sys; from trueup.cli import main; main(sys.argv[1:])"]
    command += ["--show-completion", shell]
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert f"_TRUEUP_COMPLETE=complete_{shell}" in done.stdout
