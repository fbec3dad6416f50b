"""What authors subclass, return and raise."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import trueup
from trueup import Backfill, Context, Outcome, Partition, Window
from trueup.errors import JobError, JobFileError
from trueup.jobs import Settings, environment_secret, overrides
from trueup.loading import load_class
from trueup.model.states import Phase

from .worker_cases import job_file

PART = Partition(partition_id="date=2013-01-05")
WINDOW = Window(kind="all")


def context(**changes: Any) -> Context:
    """A context of the first attempt."""
    known: dict[str, Any] = {"run_id": "r", "phase": Phase.APPLY, "partition": PART, "launch": 1, "fence": 1}
    return Context(**{**known, **changes})


def test_the_public_names_are_all_there() -> None:
    assert [] == [name for name in trueup.__all__ if not hasattr(trueup, name)]


@pytest.mark.parametrize("hook", ["read", "write"])
def test_what_is_required_says_so(hook: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"Backfill has no {hook}\("):
        getattr(Backfill(), hook)(PART, None)


def test_partitions_says_what_the_job_file_asked_for() -> None:
    with pytest.raises(NotImplementedError, match="its job file says `by: job`"):
        Backfill().partitions(WINDOW)


def test_what_is_optional_has_its_default() -> None:
    job = Backfill()
    job.open()
    job.raise_fence(PART, context())
    job.close()
    assert (None, "record", ["row"], ()) == (
        job.count(PART),
        job.transform("record"),
        job.combine(["row"]),
        job.finish(PART, context()),
    )


def test_params_without_a_model_are_a_dictionary() -> None:
    assert {"year": 2013} == Backfill(Settings({"year": 2013})).params


def test_params_with_a_model_are_typed_or_refused() -> None:
    class Params(BaseModel):
        year: int

    class Job(Backfill):
        pass

    Job.Params = Params
    assert 2013 == Job(Settings({"year": "2013"})).params.year
    with pytest.raises(ValidationError):
        Job(Settings({"year": "soon"}))


def test_a_secret_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_READ_DSN", "postgres:")
    assert "postgres:" == Backfill().secret("read-dsn")


def test_a_secret_that_is_not_there_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SECRET_DSN", raising=False)
    with pytest.raises(JobError, match="SECRET_DSN is not set"):
        environment_secret("dsn")


def test_the_batch_size_is_asked_for_each_time() -> None:
    sizes = iter([1000, 250])
    job = Backfill(Settings(batch_size=lambda: next(sizes)))
    assert [1000, 250] == [job.batch_size, job.batch_size]


def test_a_key_is_the_same_for_every_attempt() -> None:
    first, later = context(), context(launch=7, fence=7)
    assert first.key({"id": 1}) == later.key({"id": 1})
    assert 64 == len(first.key({"id": 1}))


def test_keys_differ_by_run_partition_record_and_what_tells_records_apart() -> None:
    other_part = Partition(partition_id="date=2013-01-06")
    keys = {
        context().key(1),
        context(run_id="s").key(1),
        context(partition=other_part).key(1),
        context().key(2),
        context().key(1, "second"),
    }
    assert 5 == len(keys)


def test_outcomes_add_up() -> None:
    total = Outcome(written=1, refused=[("a", "no")]).plus(Outcome(unchanged=2, refused=[("b", "never")]))
    assert Outcome(1, 2, (("a", "no"), ("b", "never"))) == total


def test_which_hooks_an_author_wrote_is_known() -> None:
    class Base(Backfill):
        def combine(self, rows: Any) -> Any:
            return rows

    class Job(Base):
        pass

    assert (True, False) == (overrides(Job(), "combine"), overrides(Job(), "transform"))


SOURCE = """
from trueup import Backfill
class Job(Backfill):
    def read(self, part, after): ...
    def write(self, rows, ctx): ...
class Half(Backfill):
    def read(self, part, after): ...
class Stranger: ...
"""


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("no_module", None, "cannot be loaded: No module named 'no_module'"),
        ("no_name", "", "cannot be loaded: module 'no_name' has no attribute 'Job'"),
        (
            "no_import",
            "import nothing_of_this_name",
            "cannot be loaded: No module named 'nothing_of_this_name'",
        ),
        ("no_syntax", "class Job(", "cannot be imported: SyntaxError"),
        ("no_luck", "1 / 0", "cannot be imported: ZeroDivisionError"),
        ("no_stay", "raise SystemExit(0)", "cannot be imported: SystemExit: 0"),
        ("no_backfill", "Job = 1", "is no Backfill"),
        ("no_hooks", "from trueup import Backfill\nclass Job(Backfill): ...", "has no read and no write"),
    ],
)
def test_a_class_that_cannot_be_loaded_says_why(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, name: str, source: str | None, message: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    if source is not None:
        (tmp_path / f"{name}.py").write_text(source)
    with pytest.raises(JobFileError) as failed:
        load_class(job_file(**{"class": f"{name}:Job"}), tmp_path)
    assert message in str(failed.value)


def test_a_class_is_loaded_from_its_folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "sound_job.py").write_text(SOURCE)
    assert "Job" == load_class(job_file(**{"class": "sound_job:Job"}), tmp_path).__name__


def test_the_guard_transaction_needs_a_raised_fence(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "fenceless_job.py").write_text(SOURCE)
    job = job_file(**{"class": "fenceless_job:Job", "target": {"name": "t", "guard": "transaction"}})
    with pytest.raises(JobFileError, match="has no raise_fence"):
        load_class(job, tmp_path)


def test_a_job_that_runs_a_command_has_no_class(tmp_path: Any) -> None:
    sections = {"class": None, "command": ("./work",)}
    with pytest.raises(JobFileError, match="runs a command, not a class"):
        load_class(job_file(**sections), tmp_path)
