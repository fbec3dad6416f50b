"""The local stack that tests of this folder share: template.yaml's jobs, and those of `jobs/`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trueup.local.stack import Options, Stack, stack

from .watching import JOBS


@pytest.fixture(scope="session")
def up() -> Iterator[Stack]:
    """A stack that lives as long as the session."""
    with stack(Options(jobs=JOBS)) as made:
        yield made
