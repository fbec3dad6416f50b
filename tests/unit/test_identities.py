"""Who is one of whom, and who is the same person."""

from __future__ import annotations

import pytest

from trueup.model.people import is_one_of, person, principal

ACCOUNT = "123456789012"
USER = f"arn:aws:iam::{ACCOUNT}:user/bob"
ROLE = f"arn:aws:sts::{ACCOUNT}:assumed-role/ReleaseManager/bob-at-work"
SSO = f"arn:aws:sts::{ACCOUNT}:assumed-role/AWSReservedSSO_Ops_0a1b/bob@example.org"


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        (USER, USER),
        (ROLE, f"arn:aws:iam::{ACCOUNT}:role/ReleaseManager"),
        (SSO, f"arn:aws:iam::{ACCOUNT}:role/AWSReservedSSO_Ops_0a1b"),
        ("arn:aws-cn:sts::1:assumed-role/Ops/x", "arn:aws-cn:iam::1:role/Ops"),
        ("schedule:nightly", "schedule:nightly"),
    ],
)
def test_a_session_is_the_role_that_was_assumed(who: str, expected: str) -> None:
    assert expected == principal(who)


@pytest.mark.parametrize(
    ("who", "patterns", "expected"),
    [
        (ROLE, ["ReleaseManager"], True),
        (ROLE, ["releasemanager"], False),
        (ROLE, ["Release*"], True),
        (ROLE, ["Release"], False),
        (ROLE, ["user/bob", "Other"], False),
        (ROLE, [f"arn:aws:iam::{ACCOUNT}:role/ReleaseManager"], True),
        (ROLE, ["arn:aws:iam::999999999999:role/ReleaseManager"], False),
        (USER, ["user/bob"], True),
        (USER, ["bob"], False),  # a user is no role, whatever it is called
        (USER, ["user/b*"], True),
        (SSO, ["AWSReservedSSO_Ops_*"], True),
        ("schedule:nightly", ["nightly", "user/nightly"], False),
        ("", ["ReleaseManager"], False),
        (ROLE, [], False),
    ],
)
def test_patterns_name_roles_users_and_arns(who: str, patterns: list[str], expected: bool) -> None:
    assert expected == is_one_of(who, patterns)


def test_whoever_assumes_a_role_chooses_the_sessions_name_so_it_tells_nobody_apart() -> None:
    assert person(ROLE) == person(ROLE.replace("bob-at-work", "ann"))
    assert person(USER) != person(USER.replace("bob", "ann"))


def test_identity_center_names_its_sessions_itself() -> None:
    assert person(SSO) != person(SSO.replace("bob@", "ann@"))
