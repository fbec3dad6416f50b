"""The tests of docs/writing-jobs.md."""

from pathlib import Path

import pytest
from orders import TARGET, Orders

from trueup.testing import LocalRun, check_backfill

JOB_FILE = Path(__file__).with_name("orders.yaml")


@pytest.fixture
def target():
    TARGET.clear()
    yield TARGET
    TARGET.clear()


@pytest.fixture
def make_run(target):
    def make():
        target.clear()
        return LocalRun(Orders, JOB_FILE)

    return make


def test_a_kill_after_the_first_batch_loses_nothing(make_run):
    run = make_run()
    while run.step().name != "advanced":
        pass
    run.kill()
    run.run()
    assert run.accepted == run.planned == 2
    assert run.records.read == 7


def test_every_promise_holds_at_every_point(make_run, target):
    check_backfill(make_run, target=lambda: dict(target))
