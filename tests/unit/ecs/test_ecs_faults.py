"""Launches that are refused: the disguises of a throttle, and no capacity; and how images are found.

Where a test names no source: ours, since images are folders here; what throttles say is in aws-facts
section 2.4.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from trueup.local.ecs.errors import ApiError, CannotStart
from trueup.local.ecs.faults import REFUSALS, Launch, NoFaults, Refusal
from trueup.local.ecs.images import Image, KnownImages, digest_of, worker_image

from .ecs_cases import Case, on_a_loop


@dataclass
class Once(NoFaults):
    """The first launch is refused."""

    fault: str
    struck: bool = False

    def refuses(self, launch: Launch) -> Refusal | None:
        refusal = None if self.struck else REFUSALS[self.fault]
        self.struck = True
        return refusal


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("throttled", ("ThrottlingException", "Rate exceeded")),
        ("throttled-parameter", ("InvalidParameterException", "Error retrieving subnet: Rate exceeded")),
        ("capacity", ("CapacityUnavailableException", REFUSALS["capacity"].message)),
    ],
)
@on_a_loop
async def test_a_launch_is_refused_as_an_error(fault: str, expected: tuple[str, str]) -> None:
    """aws-facts section 2.4, rows "Rate exceeded", "ENI or subnet lookup throttled", "Capacity"."""
    case = Case(faults=Once(fault))
    with pytest.raises(ApiError) as refusal:
        case.fargate.run({"taskDefinition": "job", "clientToken": "t"})
    assert expected == (refusal.value.name, refusal.value.message)
    assert (await case.run(clientToken="t")).arn  # a refused token was not used up
    await case.fargate.close()


@pytest.mark.parametrize("fault", ["throttled-failure", "capacity-failure"])
@on_a_loop
async def test_a_launch_is_refused_under_http_200(fault: str) -> None:
    """aws-facts section 2.4, row "RunTask returns non-empty failures"; gchq/sleeper#904."""
    case = Case(faults=Once(fault))
    assert ([], [REFUSALS[fault]] * 2) == case.fargate.run({"taskDefinition": "job", "count": 2})


def test_an_image_is_found_by_reference_digest_and_name() -> None:
    image = worker_image(Path("/containers/app"))
    digest = "sha256:" + "a" * 64
    images = KnownImages({digest: image, "repo/app": image, "exact:1": image})
    found = [f"any.where/x@{digest}", "repo/app:latest", "repo/app", "exact:1"]
    assert [image] * 4 == [images.find(reference) for reference in found]
    assert [None] * 2 == [images.find(reference) for reference in ("exact:2", f"repo/app@sha256:{'b' * 64}")]
    assert digest == digest_of(f"any.where/x@{digest}", image)


def test_an_image_that_nobody_named_is_told_on_the_side(caplog: pytest.LogCaptureFixture) -> None:
    """ECS's own words, which the task is told, do not say what to do here."""
    with pytest.raises(CannotStart, match=r"^CannotPullContainerError: .*python:3\.12: not found$"):
        asyncio.run(KnownImages().pull("python:3.12"))
    assert ["Nothing is known of the image python:3.12: give --image python:3.12=FOLDER."] == caplog.messages


def test_an_entry_point_of_the_definition_drops_the_images_command() -> None:
    """As Docker combines ENTRYPOINT and CMD."""
    image = Image(("python", "-m", "app"), Path("/"), ("serve",))
    assert ["python", "-m", "app", "serve"] == image.argv(None, None)
    assert ["python", "-m", "app", "once"] == image.argv([], ["once"])
    assert ["sh"] == image.argv(["sh"], None)
