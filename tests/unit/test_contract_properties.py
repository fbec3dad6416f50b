"""Whatever a consistent ledger holds is accepted, and no single figure of it can be bent."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.contract import Standing

from .contract_cases import FENCE, Case, entry

COUNTS = st.integers(0, 10**9)
LIMIT = 3


@st.composite
def entries(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """A partition as an honest runner would report it with at most `LIMIT` rejects allowed."""
    skipped = draw(st.dictionaries(st.text(max_size=5), st.integers(1, 1_000), max_size=3))
    used, rejected = draw(COUNTS), draw(st.integers(0, 4))
    written, unchanged, refused = draw(COUNTS), draw(COUNTS), draw(st.integers(0, 4))
    read = used + sum(skipped.values()) + rejected
    bad = rejected + refused
    ended = ["REJECTED"] if bad > LIMIT else ["SUCCEEDED", "FAILED"]
    status = draw(st.sampled_from([*ended, "INTERRUPTED"]))
    interrupted, succeeded = status == "INTERRUPTED", status == "SUCCEEDED"
    outputs = draw(st.lists(COUNTS, max_size=2)) if succeeded else []
    return entry(
        f"tenant={number}",
        fence=FENCE,
        status=status,
        cursor=draw(st.sampled_from([None, "v1:end", "v2:48210"])),
        recordsCounted=draw(st.sampled_from([None, read])) if succeeded else None,
        recordsRead=read,
        recordsUsed=used,
        recordsSkipped=sum(skipped.values()),
        recordsRejected=rejected,
        recordsProduced=written + unchanged + refused,
        recordsWritten=written,
        recordsUnchanged=unchanged,
        recordsRefused=refused,
        skipped=skipped,
        rejects=f"s3://rejects/{number}" if bad and not interrupted else None,
        outputs=[
            {"location": f"s3://out/{number}/{part}", "sha256": "c" * 64, "records": records}
            for part, records in enumerate(outputs)
        ],
        error={"kind": "Boom", "message": "", "record": None, "batchAfter": None}
        if status == "FAILED"
        else None,
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A contract and the facts that bear it out."""
    listed = [draw(entries(number)) for number in range(draw(st.integers(1, 3)))]
    good = all(one["status"] == "SUCCEEDED" for one in listed)
    case = Case(*listed, status="SUCCEEDED" if good else "INTERRUPTED").known(
        reject_limit=LIMIT, empty_allowed=True
    )
    for one in listed:
        case.objects |= {output["location"]: output["sha256"] for output in one["outputs"]}
        case.objects |= {one["rejects"]: "d" * 64} if one["rejects"] else {}
    return case


def figures(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where the document holds a number."""
    if isinstance(document, int):
        yield path
    elif isinstance(document, dict | list):
        for key, part in document.items() if isinstance(document, dict) else enumerate(document):
            yield from figures(part, (*path, key))


def bend(document: dict[str, Any], path: tuple[str | int, ...], by: int) -> dict[str, Any]:
    """The document with one number changed."""
    bent = copy.deepcopy(document)
    part: Any = bent
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] += by
    return bent


@settings(deadline=None)  # judging is quick, but a busy machine is not
@given(cases())
def test_a_contract_built_from_a_consistent_ledger_is_accepted(case: Case) -> None:
    assert () == case.judge().refusals


@settings(deadline=None)  # judging is quick, but a busy machine is not
@given(cases(), st.data())
def test_a_contract_with_any_one_figure_changed_is_not_accepted(case: Case, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(list(figures(case.document))))
    case.document = bend(case.document, path, data.draw(st.integers(-3, 3).filter(bool)))

    assert Standing.GOOD != case.judge().standing


def test_every_figure_of_the_good_contract_is_guarded() -> None:
    unguarded = []
    for path in figures(Case().document):
        case = Case()
        case.document = bend(case.document, path, 1)
        unguarded += [path] if case.judge().standing is Standing.GOOD else []

    assert [] == unguarded
