"""Functions whose processes really die or run out of time, before or after their work was done.

The trouble is packed beside the function's own code for as long as these tests last: nothing that is deployed
otherwise knows of it. Answers that are lost on the way are in `test_faults_calls.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from trueup.local.packaging import project, zipped
from trueup.local.stack import NAME

from . import dying
from .numbered import assert_exact
from .rig import Case, Rig, together

pytestmark = pytest.mark.timeout(600)
FUNCTIONS = ("plan", "settle", "accept")
SECONDS = 10
"""What a function may take here: more than any takes, and less than anybody wants to wait."""
_DIED = "Runtime exited with error"
TOLD = {"before": _DIED, "after": _DIED, "hang": "Task timed out after"}


@pytest.fixture(scope="module")
def trouble(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the functions look for what shall become of them."""
    folder = tmp_path_factory.mktemp("trouble")
    client = rig.up.client("lambda")
    before = {name: client.get_function_configuration(FunctionName=f"{NAME}-{name}") for name in FUNCTIONS}
    for name, found in before.items():
        variables = {**found["Environment"]["Variables"], "TROUBLE": str(folder)}
        deploy(rig, name, "dying.handler", SECONDS, variables)
    yield folder
    for name, found in before.items():
        deploy(rig, name, found["Handler"], found["Timeout"], found["Environment"]["Variables"])


def deploy(rig: Rig, name: str, handler: str, seconds: int, variables: dict[str, str]) -> None:
    """Deploy a function's code, with the trouble beside it if that is its handler."""
    client, app = rig.up.client("lambda"), project() / "lambdas" / name / "app.py"
    files = {"app.py": app.read_bytes()}
    if handler.startswith("dying"):
        files["dying.py"] = Path(dying.__file__).read_bytes()
    client.update_function_code(FunctionName=f"{NAME}-{name}", ZipFile=zipped(files))
    client.update_function_configuration(
        FunctionName=f"{NAME}-{name}",
        Handler=handler,
        Timeout=seconds,
        Environment={"Variables": variables},
    )


def doom(folder: Path, how: str, run_id: str) -> None:
    """Let each function die once when it works for a run."""
    for function in FUNCTIONS:
        (folder / f"{run_id}.{function}.{how}").touch()


def test_functions_whose_processes_die_are_called_again_and_nothing_is_done_twice(
    rig: Rig, trouble: Path, subtests: pytest.Subtests
) -> None:
    cases = [Case(how, days=2, prepare=partial(doom, trouble, how)) for how in dying.HOWS]
    # One after the other: MiniStack has one process for a function, and who hangs there holds up the others.
    for case, run in together(rig, cases, at_once=1):
        how = case.name
        with subtests.test(how):
            assert_exact(rig, run)
            assert [] == list(trouble.glob(f"{run.run_id}.*")), "not every function met its trouble"
            causes = [cause for _, cause in rig.failures(run.run_id)]
            assert len(FUNCTIONS) <= sum(TOLD[how] in cause for cause in causes)
            assert {1: ("exit code 0", "done"), 2: ("exit code 0", "done")} == rig.launches(run.run_id)
