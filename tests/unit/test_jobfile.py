"""Job files: what is refused, with which line and remedy; the catalogue; and the page that describes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from trueup.errors import JobFileError, UsageError
from trueup.jobfile import catalogue, find, load, loads
from trueup.model import job as models
from trueup.model.request import Request
from trueup.planning import partitions

ROOT = Path(__file__).parents[2]

GOOD = """\
name: flights-summary
class: flights:Summary
parameters:
  type: object
  properties:
    carrier: {type: string, default: AA}
partitions:
  by: date
  timezone: Europe/Paris
  input: "flights/{date}.csv"
target:
  name: summary
  guard: fence
batch:
  maximumSeconds: 20
task:
  minutes: 10
"""


def with_line(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


def refusal(text):
    with pytest.raises(JobFileError) as refused:
        loads(text, "job.yaml")
    return str(refused.value)


def test_a_good_file_is_read_with_its_defaults():
    job = loads(GOOD)
    assert ("flights-summary", "flights:Summary", "Europe/Paris") == (
        job.name,
        job.job_class,
        job.partitions.timezone,
    )
    assert (20.0, 1000, 10.0) == (job.batch.maximum_seconds, job.batch.size, job.task.minutes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("class: f", "clas: f", "job.yaml:2: clas: there is no such field. Did you mean `class`?"),
        (
            "  minutes",
            "  minuts",
            "job.yaml:17: task.minuts: there is no such field. Did you mean `minutes`?",
        ),
        (
            "  timezone",
            "  timezon",
            "job.yaml:9: partitions.timezon: there is no such field. Did you mean `timezone`?",
        ),
        (
            "name: flights-summary",
            "name: Flights_Summary",
            'job.yaml:1: name: "Flights_Summary" cannot stand here. Write',
        ),
        ("guard: fence", "guard: fense", 'job.yaml:13: target.guard: "fense" is not one of'),
        ("guard: fence", "guard: fense", "Did you mean `fence`?"),
        ("  guard: fence\n", "", "job.yaml:11: target.guard: `guard` is missing. Add it."),
        (
            "by: date",
            "by: dat",
            "job.yaml:7: partitions: partitions cannot be made by 'dat'. Did you mean `date`?",
        ),
        ("  by: date\n", "", "job.yaml:7: partitions: `by` is missing. Add one of: date, key-range, list"),
        (
            "Europe/Paris",
            "Europe/Pariss",
            "job.yaml:9: partitions.timezone: there is no time zone 'Europe/Pariss'. Did",
        ),
        ("Europe/Paris", '"../etc"', "job.yaml:9: partitions.timezone: there is no time zone '../etc'"),
        (
            "{date}",
            "{dat}",
            "job.yaml:10: partitions.input: the pattern has {dat}, which nothing fills. Did you mean {date}?",
        ),
        (
            "{date}",
            "{hour}",
            "job.yaml:10: partitions.input: the pattern has {hour}, which nothing fills. Use {date}",
        ),
        ("{date}", "{date", "job.yaml:10: partitions.input: the pattern has a stray {, which nothing fills."),
        (
            "maximumSeconds: 20",
            "maximumSeconds: 30",
            "job.yaml:15: batch.maximumSeconds: a batch may take 30 s, but the container is killed 30 s "
            "after it was asked to stop: lower batch.maximumSeconds below task.stopSeconds, or raise "
            "task.stopSeconds (at most 120)",
        ),
        ("maximumSeconds: 20", "targetSeconds: 25", "batch.targetSeconds: the target of 25 s is above"),
        ("minutes: 10", "noProgressSeconds: 20", "task.noProgressSeconds: a batch may take 20 s, but"),
        (
            "minutes: 10",
            "cpu: 1024",
            "task.memory: Fargate has no size of 1024 CPU units with 512 MiB: choose from 2048",
        ),
        ("minutes: 10", 'minutes: "10"', 'job.yaml:17: task.minutes: "10" is not a number. Give a number.'),
        (
            "minutes: 10",
            "minutes: 010",
            "job.yaml:17: task.minutes: YAML readers disagree about what 010 is.",
        ),
        (
            "minutes: 10",
            "minutes: 1_0",
            "job.yaml:17: task.minutes: YAML readers disagree about what 1_0 is.",
        ),
        (
            "minutes: 10",
            "minutes: 1:30",
            "job.yaml:17: task.minutes: YAML readers disagree about what 1:30 is.",
        ),
        ("minutes: 10", "minutes: .inf", "job.yaml:17: task.minutes: .inf is not a number to work with."),
        ("minutes: 10", "minutes:", "job.yaml:17: task.minutes: it is empty. Give a number, or remove it."),
        (
            "minutes: 10",
            "minutes: 10\n  minutes: 20",
            "job.yaml:18: task.minutes: this key is here twice; first in line 17.",
        ),
        ("task:\n  minutes: 10", "task: 10", "job.yaml:16: task: 10 is not a mapping. Give a mapping."),
        (
            "minutes: 10",
            "minutes: 10\napproval: {required: yes}",
            "job.yaml:18: approval.required: yes is text here. Write true.",
        ),
        (
            "minutes: 10",
            "minutes: 10\napproval: {required: off}",
            "approval.required: off is text here. Write false.",
        ),
        (
            "minutes: 10",
            "minutes: 10\nverify: 2024",
            "job.yaml:18: verify: 2024 is not a mapping. Give a mapping.",
        ),
        (
            "minutes: 10",
            "minutes: 10\nverify: {job: Check}",
            'job.yaml:18: verify.job: "Check" cannot stand here. Write the name of a reconcile job.',
        ),
        (
            "minutes: 10",
            "minutes: 10\nverify: {job: check, params: {table: '{tabel}'}}",
            "job.yaml:18: verify.params.table: there is no parameter tabel: declare it in `parameters`",
        ),
        (
            "minutes: 10",
            "minutes: 10\nabort: [{of: dollars, above: 5}]",
            "abort.0.unit: dollars is not measured in count: write usd.",
        ),
        (
            "minutes: 10",
            "minutes: 10\nabort: [{of: hours, above: 5, unit: hours, minimum: 3}]",
            "abort.0.minimum: hours are spent whatever has ended: leave `minimum` out.",
        ),
        ("minutes: 10", "minutes: 10\ncommand: [run]", "job.yaml:2: class: name what runs: either"),
        (
            "class: flights:Summary\n",
            "",
            "class: name what runs: either `class: module:Class` or `command: [...]`",
        ),
        ("minutes: 10", "<<: {minutes: 10}", "job.yaml:17: task: merge keys (`<<`) are not read."),
        (
            "minutes: 10",
            "minutes: !!int 10",
            "job.yaml:17: task.minutes: the tag tag:yaml.org,2002:int is not read.",
        ),
        (
            "minutes: 10",
            "minutes: 10\nlimits: &a {}\nerrors: *a",
            "job.yaml:19: errors: an alias (`*name`) stands here.",
        ),
        ("  minutes: 10", "\tminutes: 10", "job.yaml:17: this is not YAML: found character '\\t'"),
        (
            "type: string,",
            "type: strng,",
            "job.yaml:6: parameters.properties.carrier.type: this is not valid JSON Schema",
        ),
        (
            "default: AA",
            "default: 5",
            "job.yaml:6: parameters.properties.carrier.default: the default breaks its own schema",
        ),
        ("  type: object\n", "  type: array\n", "job.yaml:4: parameters.type: parameters are an object."),
        (
            "  properties:\n    carrier",
            "  carrier",
            "job.yaml:5: parameters.carrier: this is not a word of JSON Schema. Put `carrier`",
        ),
        (
            "  properties:",
            "  propertes:",
            "job.yaml:5: parameters.propertes: this is not a word of JSON Schema. Did you mean `properties`?",
        ),
    ],
)
def test_a_bad_file_is_refused_with_line_field_and_remedy(old, new, message):
    assert message in refusal(with_line(old, new))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{by: key-range}", "partitions: integer keys are cut by `size`"),
        ("{by: key-range, size: 0}", "partitions.size: 0: input should be greater than or equal to 1."),
        ("{by: key-range, type: text, splits: [b, a]}", "partitions: the splits must ascend"),
        ("{by: list, items: [a, b, a]}", "partitions: 'a' is among the items twice"),
        ("{by: list, items: [1]}", 'partitions.items.0: 1 is not text. Write it in quotes: "1".'),
        (
            "{by: list, input: '{date}'}",
            "partitions.input: the pattern has {date}, which nothing fills. Use {label}.",
        ),
        (
            "{by: s3-prefix, prefix: bucket/x}",
            'partitions.prefix: "bucket/x" cannot stand here. Write s3://bucket/prefix/.',
        ),
        ("{by: job, unit: day}", "partitions.unit: there is no such field."),
    ],
)
def test_each_kind_of_partitions_has_its_own_rules(settings, message):
    text = re.sub(r"partitions:\n(  .*\n)+", f"partitions: {settings}\n", GOOD)
    assert f"job.yaml:7: {message}" in refusal(text)


def test_everything_that_is_wrong_is_told_at_once_in_order_of_lines():
    text = GOOD.replace("guard: fence", "guard: fense").replace("minutes: 10", "stopSeconds: 10\n  x: 1")
    text = text.replace("Europe/Paris", "Nowhere").replace("by: date", "by: date\n  unit: dya")
    told = refusal(text).splitlines()
    assert [9, 10, 14, 16, 19] == [int(line.split(":")[1]) for line in told]
    assert all(line.startswith("job.yaml:") for line in told)


def test_words_and_dates_stay_what_they_look_like():
    items = ["no", "on", "2013-01-05", "12e", "1.2.3"]
    text = re.sub(r"partitions:\n(  .*\n)+", f"partitions: {{by: list, items: [{', '.join(items)}]}}\n", GOOD)
    assert tuple(items) == loads(text).partitions.items


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "job.yaml:1: the file is empty."),
        ("- a", "job.yaml:1: a job file is a mapping of fields."),
        ("text", "job.yaml:1: a job file is a mapping of fields."),
        ("a: [", "job.yaml:1: this is not YAML"),
        ("a: 'x", "this is not YAML"),
        ("a: 1\n---\nb: 2", "this is not YAML"),
        ("a: \x00", "this is not YAML"),
        ("? [a, b]\n: c", "job.yaml:1: a key must be one word."),
    ],
)
def test_what_is_no_job_file_at_all_is_refused(text, message):
    assert message in refusal(text)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(JobFileError, match=r"job.yaml: it cannot be read: No such file"):
        load(tmp_path / "job.yaml")
    (tmp_path / "job.yaml").write_bytes(b"name: \xff")
    with pytest.raises(JobFileError, match="it is not UTF-8 text"):
        load(tmp_path / "job.yaml")


def write_jobs(folder, **texts):
    for name, text in texts.items():
        (folder / "containers" / name).mkdir(parents=True)
        (folder / "containers" / name / "job.yaml").write_text(text, encoding="utf-8")


def test_the_catalogue_gathers_the_jobs_by_name(tmp_path):
    write_jobs(tmp_path, one=GOOD, two=with_line("flights-summary", "flights-rows"))
    assert ["flights-rows", "flights-summary"] == sorted(catalogue(tmp_path))


def test_the_catalogue_tells_the_problems_of_all_files(tmp_path):
    write_jobs(tmp_path, a=GOOD, b=GOOD, c=with_line("clas", "klas"), d=with_line("fence", "no"))
    with pytest.raises(UsageError) as refused:
        catalogue(tmp_path)
    told = str(refused.value)
    assert "b/job.yaml: name: " in told
    assert "declares flights-summary too. Rename one." in told
    assert "c/job.yaml:2: klass" in told
    assert "d/job.yaml:13: target.guard" in told


def test_an_unknown_job_gets_a_suggestion():
    with pytest.raises(
        UsageError, match=r"no job is called 'flights-sumary'\. Did you mean `flights-summary`?"
    ):
        find({"flights-summary": loads(GOOD)}, "flights-sumary")


# docs/job-file.md


def sections():
    """Each model of the job file by the title of its section in the page."""
    kinds = {
        kind.model_fields["by"].annotation.__args__[0]: kind
        for kind in (
            models.DatePartitions,
            models.KeyRangePartitions,
            models.ListPartitions,
            models.S3PrefixPartitions,
            models.JobPartitions,
        )
    }
    parts = {
        "secrets": models.Secrets,
        "target": models.Target,
        "batch": models.BatchSettings,
        "task": models.TaskSettings,
        "limits": models.Limits,
        "errors": models.ErrorSettings,
        "abort": models.AbortRule,
        "approval": models.Approval,
    }
    return {
        "The file": models.JobFile,
        **{f"partitions, by {by}": kind for by, kind in kinds.items()},
        **parts,
    }


def documented(title):
    """The rows of a section's table: field to default, as written."""
    page = (ROOT / "docs" / "job-file.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title!r}"
    return dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", found[1], re.MULTILINE))


def default_text(info):
    default = info.get_default(call_default_factory=True)
    if default is PydanticUndefined:
        return "required"
    if default is None or default in ((), {}, "") or isinstance(default, BaseModel):
        return "none" if not isinstance(default, BaseModel) else "see below"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


@pytest.mark.parametrize("title", sections())
def test_the_page_has_every_field_with_its_default(title):
    model = sections()[title]
    expected = {info.alias: default_text(info) for info in model.model_fields.values()}
    assert expected == documented(title)


def test_the_first_example_of_the_page_is_a_job_file():
    page = (ROOT / "docs" / "job-file.md").read_text(encoding="utf-8")
    example = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert example
    assert "flights-summary" == loads(example[1]).name


def test_the_page_says_what_date_and_label_are_for_each_unit():
    page = (ROOT / "docs" / "job-file.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| `(date=\S+)` \| `(\S+)` \| `(\S+)` \|$", page, re.MULTILINE)
    units = models.DatePartitions.model_fields["unit"].annotation.__args__
    assert sorted(units) == sorted(unit for unit, *_ in rows)
    for unit, partition_id, date, label in rows:
        settings = {"by": "date", "unit": unit, "input": "{date} {label}"}
        document = {"name": "job", "class": "a:B", "target": {"name": "t", "guard": "key"}}
        job = models.JobFile.model_validate({**document, "partitions": settings})
        request = Request(job="job", request_id="r", requester="me", keys=[partition_id])
        (made,) = partitions(job, request)
        assert (partition_id, f"{date} {label}") == (made.id, made.input)


RECONCILE = """\
name: n
kind: reconcile
truth: {kind: postgres, table: t}
target: {kind: postgres, table: u}
key: [id]
columns: {id: integer, v: integer}
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("waitFor: {location: http://x}", '7: waitFor.location: "http://x" cannot stand here. Write s3://'),
        ("invariant: {kind: conservation, sums: [a-b]}", 'invariant.sums.0: "a-b" cannot stand here. Write'),
        ("version: a-b", '7: version: "a-b" cannot stand here. Write one word of letters'),
    ],
)
def test_a_text_of_the_wrong_form_is_told_wherever_it_stands(change, message):
    assert message in refusal(f"{RECONCILE}{change}\n")


def test_a_kind_that_was_refused_as_it_was_read_is_told_once():
    told = refusal(RECONCILE.replace("kind: reconcile", "kind: 0x1"))
    assert ["job.yaml:2"] == [line.partition(": ")[0] for line in told.splitlines()]
