"""Faults on purpose: the three disguises of a throttle, chance with a seed, and faults that are ordered."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueup.local.ecs.errors import ApiError
from trueup.local.ecs.faults import REFUSALS, UNHARMED, Chances, Fate, Launch
from trueup.local.ecs.images import Image, KnownImages, digest_of, worker_image
from trueup.local.ecs.orders import Ordered, Orders

from .ecs_cases import Case, on_a_loop

LAUNCH = Launch("job", 1, {})


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
    case = Case()
    case.fargate.orders.add(Ordered(fault))
    with pytest.raises(ApiError) as refusal:
        case.fargate.run({"taskDefinition": "job", "clientToken": "t"})
    assert expected == (refusal.value.name, refusal.value.message)
    assert (await case.run(clientToken="t")).arn  # a refused token was not used up
    await case.fargate.close()


@pytest.mark.parametrize("fault", ["throttled-failure", "capacity-failure"])
@on_a_loop
async def test_a_launch_is_refused_under_http_200(fault: str) -> None:
    """aws-facts section 2.4, row "RunTask returns non-empty failures"; gchq/sleeper#904."""
    case = Case()
    case.fargate.orders.add(Ordered(fault))
    assert ([], [REFUSALS[fault]] * 2) == case.fargate.run({"taskDefinition": "job", "count": 2})


def test_chance_is_the_same_for_the_same_seed() -> None:
    def fates(seed: int) -> list[Fate]:
        rule = Chances(seed, kill=0.5, freeze=0.5, interrupt=0.2, cannot_pull=0.1, within=(0, 9))
        return [rule.fate(LAUNCH) for _ in range(50)]

    assert fates(1) == fates(1) != fates(2)
    assert {True, False} == {fate.cannot_pull for fate in fates(1)}


def test_chances_of_nothing_do_no_harm() -> None:
    rule = Chances(1)
    assert (None, UNHARMED, False) == (rule.refuses(LAUNCH), rule.fate(LAUNCH), rule.loses("arn"))


def test_an_order_strikes_as_often_as_it_says_and_only_its_family() -> None:
    orders = Orders()
    orders.add(Ordered("kill", times=2, seconds=3, family="job"))
    assert UNHARMED == orders.fate(Launch("other", 1, {}))
    assert [Fate(kill=3), Fate(kill=3), UNHARMED] == [orders.fate(LAUNCH) for _ in range(3)]


def test_orders_for_one_task_add_up_and_leave_the_rule_below_alone() -> None:
    orders = Orders(Chances(1, kill=1))
    orders.add(Ordered("freeze", seconds=1))
    orders.add(Ordered("cannot-pull"))
    assert Fate(freeze=1, cannot_pull=True) == orders.fate(LAUNCH)
    assert orders.fate(LAUNCH).kill is not None


@pytest.mark.parametrize("given", [{}, {"fault": "sabotage"}, {"fault": "kill", "times": "often"}])
def test_an_order_that_makes_no_sense_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ApiError):
        Ordered.read(given)


def test_an_image_is_found_by_reference_digest_and_name() -> None:
    image = worker_image(Path("/containers/app"))
    digest = "sha256:" + "a" * 64
    images = KnownImages({digest: image, "repo/app": image, "exact:1": image})
    found = [f"any.where/x@{digest}", "repo/app:latest", "repo/app", "exact:1"]
    assert [image] * 4 == [images.find(reference) for reference in found]
    assert [None] * 2 == [images.find(reference) for reference in ("exact:2", f"repo/app@sha256:{'b' * 64}")]
    assert digest == digest_of(f"any.where/x@{digest}", image)


def test_an_entry_point_of_the_definition_drops_the_images_command() -> None:
    """As Docker combines ENTRYPOINT and CMD."""
    image = Image(("python", "-m", "app"), Path("/"), ("serve",))
    assert ["python", "-m", "app", "serve"] == image.argv(None, None)
    assert ["python", "-m", "app", "once"] == image.argv([], ["once"])
    assert ["sh"] == image.argv(["sh"], None)
