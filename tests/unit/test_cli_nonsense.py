"""Nonsense on the command line: one message with the place and the remedy, exit 2, nothing created."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueup.cli import main

from .cli_cases import CODE, JOB, contents

FILE = Path("containers/flights/job.yaml")
WINDOW = ["--from", "2013-01-01", "--to", "2013-02-01"]
MOST = "most: {type: integer}"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one good job, and the working directory."""
    monkeypatch.chdir(tmp_path)
    FILE.parent.mkdir(parents=True)
    FILE.write_text(JOB, encoding="utf-8")
    (FILE.parent / "flights.py").write_text(CODE, encoding="utf-8")
    Path("folder").mkdir()
    Path("binary").write_bytes(bytes(range(256)))
    Path("large").write_bytes(b"2013-01-01\n" * 200_000)
    return tmp_path


def refused(project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """What a command says that must refuse its input and create nothing."""
    before = contents(project)
    assert 2 == main(arguments)
    told = capsys.readouterr()
    assert ("", before) == (told.out, contents(project))
    assert "Traceback" not in told.err
    return told.err


def changed(old: str, new: str | bytes) -> bytes:
    assert old in JOB
    return JOB.encode().replace(old.encode(), new.encode() if isinstance(new, str) else new)


JOB_FILES: dict[str, tuple[bytes, str]] = {
    "unclosed list": (b"name: [a\n", ":2: this is not YAML: expected ',' or ']'"),
    "unclosed quote": (JOB.encode() + b'description: "a\n', ":14: this is not YAML: "),
    "tab": (changed("  by: date", "\tby: date"), r":9: this is not YAML: found character '\t'"),
    "binary": (bytes(range(256)), ": it is not UTF-8 text. Save it as UTF-8."),
    "NUL": (b"name: a\0b\n", ":1: this is not YAML: special characters are not allowed"),
    "UTF-16": (JOB.encode("utf-16"), ": it is not UTF-8 text."),
    "Latin-1": (changed("name: summary\n  guard", b"name: \xe4\n  guard"), ": it is not UTF-8 text."),
    "empty": (b"", ":1: the file is empty. Write something into it."),
    "comments only": (b"# name: orders\n", ":1: the file is empty."),
    "a text": (b"orders\n", ":1: a job file is a mapping of fields. Begin with `name: my-job`."),
    "a list": (b"- name: orders\n", ":1: a job file is a mapping of fields."),
    "two documents": (
        JOB.encode() * 2 + b"---\nname: x\n",
        ":25: this is not YAML: but found another document",
    ),
    "a key twice": (JOB.encode() + b"name: x\n", ":13: name: this key is here twice; first in line 1."),
    "alias": (
        changed("guard: none", "guard: &g none\nverify: *g"),
        ":13: verify: an alias (`*name`) stands here.",
    ),
    "alias of itself": (JOB.encode() + b"abort: &a [*a]\n", ":13: abort.0: an alias (`*name`) stands here."),
    "merge key": (JOB.encode() + b"batch: {<<: {size: 1}}\n", ":13: batch: merge keys (`<<`) are not read."),
    "tag": (changed("by: date", "by: !!python/name:os.system"), ":9: partitions.by: the tag "),
    "deep": (
        b"a: " + b"[" * 3_000 + b"]" * 3_000,
        ":1: this is nested too deeply to be read. Make it flatter.",
    ),
    "rather deep": (
        JOB.encode() + b"batch: " + b"{a: " * 60 + b"1" + b"}" * 60,
        ":13: batch.a.a: this is nested more",
    ),
    "10 MB": (JOB.encode() + b"# more\n" * 1_500_000, ": it is larger than 262,144 bytes. Give long lists"),
    "many mistakes": (
        JOB.encode() + b"".join(b"k%d: 1\n" % n for n in range(9_000)),
        ": and 8970 more problems.",
    ),
    "half a character": (
        changed("by: date", 'by: "\\ud800"'),
        r":9: partitions.by: '\ud800' holds half of a",
    ),
    "time zone": (
        changed("by: date", "by: date\n  timezone: Europe/Pari"),
        ":10: partitions.timezone: there is no time",
    ),
    "thousands of digits": (JOB.encode() + b"batch: {size: " + b"9" * 5_000 + b"}", ":13: batch.size: 9999"),
    "beyond JSON": (
        JOB.encode() + b"batch: {size: 9007199254740992}",
        ":13: batch.size: 9007199254740992: input",
    ),
    "infinite": (
        JOB.encode() + b"batch: {targetSeconds: 1e400}",
        ":13: batch.targetSeconds: 1e400 is not a number",
    ),
    "octal": (
        JOB.encode() + b"batch: {size: 010}",
        ":13: batch.size: YAML readers disagree about what 010 is.",
    ),
    "no kind of schema": (
        changed("integer", "intger"),
        ":6: parameters.properties.most.type: this is not valid JSON",
    ),
    "no expression": (
        changed(MOST, 'most: {pattern: "("}'),
        ":6: parameters.properties.most.pattern: this is not",
    ),
    "schema elsewhere": (
        changed(MOST, 'most: {$ref: "http://127.0.0.1/x"}'),
        "$ref: http://127.0.0.1/x leads nowhere.",
    ),
    "schema nowhere": (
        changed(MOST, 'most: {$ref: "#/$defs/x"}'),
        ":6: parameters.properties.most.$ref: #/$defs/x leads",
    ),
    "endless schema": (
        changed(MOST, 'most: {$ref: "#/properties/most", default: 1}'),
        ":3: parameters: a default meets a `$ref` that refers to itself without an end.",
    ),
}


@pytest.mark.parametrize(("data", "message"), JOB_FILES.values(), ids=JOB_FILES)
@pytest.mark.parametrize(
    "command", [["validate"], ["estimate", "flights-summary", *WINDOW]], ids=["validate", "estimate"]
)
def test_a_job_file_that_is_nonsense(
    project: Path, capsys: pytest.CaptureFixture[str], command: list[str], data: bytes, message: str
) -> None:
    FILE.write_bytes(data)
    told = refused(project, capsys, command)
    assert message in told
    assert all(line.startswith(f"{FILE}:") for line in told.splitlines())
    assert len(told.splitlines()) <= 31


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["validate", "folder"],
            "there are no job files under folder. Name one, or write one with `trueup new NAME`.",
        ),
        (
            ["validate", "nowhere.yaml"],
            "nowhere.yaml: it cannot be read: No such file or directory. Give a job file.",
        ),
        (["validate", f"{FILE}/x"], f"{FILE}/x: it cannot be read: Not a directory."),
        (["validate", "x" * 5_000], "cannot be a path: File name too long. Name a job file, or a folder."),
        (["validate", "/dev/zero"], "/dev/zero: it is larger than 262,144 bytes."),
        (["validate", "binary"], "binary: it is not UTF-8 text."),
        (["new", "flights"], "is there already. Choose another name"),
        (["new", "x", "--in", "binary"], "the job cannot be written: binary: File exists. Nothing was left"),
        (["up", "--faults", "none"], "The faults in none cannot be read: No such file or directory. Name a"),
        (
            ["up", "--faults", "folder"],
            "The faults in folder cannot be read: Is a directory. Name a text file",
        ),
        (["up", "--faults", "binary"], "The faults in binary cannot be read: 'utf-8' codec"),
        (["up", "--faults", "/dev/zero"], "The faults in /dev/zero cannot be read: it is larger than"),
        (["demo", "--seed", "x"], "Invalid value for '--seed'"),
        (["demo", "all"], "Got unexpected extra argument"),
        (["valdate"], "No such command 'valdate'. Did you mean 'validate'?"),
    ],
)
def test_arguments_that_are_nonsense(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refused(project, capsys, arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--from", "2013-02-01", "--to", "2013-01-01"],
            "to: the window from 2013-02-01 to 2013-01-01 runs backwards.",
        ),
        (["--from", "", "--to", ""], "from: '' is not a day. Write it like 2024-01-31."),
        (["--from", "2013-02-30", "--to", "2013-03-01"], "from: '2013-02-30' is not a day."),
        (
            ["--from", "0001-01-01", "--to", "9999-12-31"],
            "to: that makes 3,652,058 partitions or more, and a run has",
        ),
        (["--to", "2013-01-01"], "from: a window needs both ends: give `from` and `to`."),
        ([*WINDOW, "--keys", "2013-01-01"], "from: give a window (`from` and `to`) or `keys`, not both."),
        (["--keys", ","], "keys: no keys are given. Name at least one, or give a window."),
        (
            ["--keys", "@folder"],
            "--keys: folder cannot be read: Is a directory. Give a text file, one key a line.",
        ),
        (["--keys", "@binary"], "--keys: binary cannot be read: it is no text in UTF-8."),
        (["--keys", "@large"], "--keys: large cannot be read: it is larger than 1,048,576 bytes."),
        (["--keys", "@/dev/zero"], "--keys: /dev/zero cannot be read: it is larger than 1,048,576 bytes."),
        (["--keys", "@a\0b"], "--keys: a\0b cannot be read: embedded null byte."),
        ([*WINDOW, "--param", "most"], "--param: 'most' is not a parameter. Write it as name=value."),
        (
            [*WINDOW, "--param", "moist=1"],
            "params.moist: flights-summary has no such parameter. Did you mean `most`?",
        ),
        ([*WINDOW, "--param", "most=1.5"], "params.most: 1.5 is not of type integer. Give an integer."),
        ([*WINDOW, "--param", "most=" + "[" * 100_000], "params.most: "),
        ([*WINDOW, "--param", "most=" + "9" * 5_000], "params.most: "),
        ([*WINDOW, "--param", "price=NaN"], 'params.price: "NaN" is not of type number. Give a number.'),
        ([*WINDOW, "--param", "price=1e999"], 'params.price: "1e999" is not of type number.'),
        (
            [*WINDOW, "--jobs", "folder"],
            "no job is called 'flights-summary'. There are no job files here: write one with `trueup new",
        ),
    ],
)
def test_an_estimate_of_nonsense(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    told = refused(project, capsys, ["estimate", "flights-summary", *arguments])
    assert told.startswith(message)
    assert 1 == len(told.splitlines())


def test_a_reference_to_a_shared_part_and_its_default_are_fine(capsys: pytest.CaptureFixture[str]) -> None:
    text = JOB.replace(MOST, 'most: {$ref: "#/$defs/some~1number", default: 3}')
    FILE.write_text(text.replace("  type: object", "  type: object\n  $defs: {some/number: {type: integer}}"))
    assert 0 == main(["validate"])
    assert 2 == main(["estimate", "flights-summary", *WINDOW, "--param", "most=x"])
    assert 'params.most: "x" is not of type integer.' in capsys.readouterr().err
