"""Step Functions on one machine: our own engine behind the API that boto3 speaks.

It runs the very definitions that are deployed (JSONPath), is faithful in what it implements, and refuses the
rest when a machine is created, naming the state, the field and what is supported.

    parsing/        definition -> typed states, or every problem with it
    paths, intrinsics, templates, choice, retry     the language, pure
    running/        states, executions, Map Runs: coroutines on one event loop
    integrations/   what Tasks call, behind one small port
    api/            the operations
    engine, server  all of it together

Time (`clock`), chance (`chance`), the services called (`integrations.port.Calls`) and the taker of status
changes (`status_events.Sink`) are handed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trueup.local.stepfunctions.engine import Engine, Settings
from trueup.local.stepfunctions.integrations.port import Answer, Calls, ServiceFailure
from trueup.local.stepfunctions.server import DEFAULT_PORT, Options, run_in_thread, serve


@contextmanager
def stepfunctions(
    endpoints: Mapping[str, str] | None = None, *, port: int = 0, **options: Any
) -> Iterator[str]:
    """Serve Step Functions in a thread while the block lasts, and give its endpoint.

    `endpoints` are those of the services that machines call, by botocore's names (`*` for all others);
    `options` are the fields of `Options`. Raises OSError where the port is taken, MockError where the mock
    configuration cannot be read.
    """
    with run_in_thread(Options(endpoints=endpoints or {}, port=port, **options)) as url:
        yield url


__all__ = [
    "Answer",
    "Calls",
    "DEFAULT_PORT",
    "Engine",
    "Options",
    "ServiceFailure",
    "Settings",
    "run_in_thread",
    "serve",
    "stepfunctions",
]
