"""What a run and its trail are told by others: who takes its repairs back, and who reads its evidence."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from typing import Any

from trueup.errors import Stale, TrueupError
from trueup.ledger import keys
from trueup.ledger.table import Table, Write
from trueup.testing.suites.support import Scene, a_run, refusal


class TrailSuite:
    """What comes to a run from outside."""

    def test_a_run_is_told_who_takes_its_repairs_back_in_their_order(self, table: Table) -> None:
        scene = Scene(table)
        runs = scene.ledger.runs
        first = runs.create(a_run(undoes=scene.run_id), undone=runs.get(scene.run_id), why="wrong")
        second = runs.create(a_run(undoes=scene.run_id), undone=runs.get(scene.run_id))
        assert (first.run_id, second.run_id) == runs.get(scene.run_id).undone_by
        _, told, _ = scene.ledger.audit.of(scene.run_id)
        assert ("ann", "undo", "wrong") == (told.who, told.verb, told.why)
        assert ({"undoneBy": []}, {"undoneBy": [first.run_id]}) == (told.before, told.after)

    def test_of_two_that_begin_to_take_back_the_same_one_is_refused_and_does_not_exist(
        self, table: Table
    ) -> None:
        scene = Scene(table)
        read = scene.ledger.runs.get(scene.run_id)
        first = scene.ledger.runs.create(a_run(undoes=scene.run_id), undone=read)
        late = a_run(undoes=scene.run_id)
        error = refusal(Stale, scene.ledger.runs.create, late, undone=read)
        assert "it is taken back by those that were read" == error.clause
        refusal(TrueupError, scene.ledger.runs.get, late.run_id)
        assert first == scene.ledger.runs.create(first, undone=read)
        assert (first.run_id,) == scene.ledger.runs.get(scene.run_id).undone_by

    def test_a_run_that_was_stored_before_it_could_be_told_is_told(self, table: Table) -> None:
        scene = Scene(table)
        table.write(Write(keys.run(scene.run_id), removes=("undoneBy",)))
        undo = scene.ledger.runs.create(a_run(undoes=scene.run_id), undone=scene.run)
        assert (undo.run_id,) == scene.ledger.runs.get(scene.run_id).undone_by

    def test_a_download_is_told_whenever_it_begins_and_not_with_each_part(self, table: Table) -> None:
        scene = Scene(table)
        told: Any = {"subject": "evidence: report", "location": "s3://b/k"}
        parts = [("ann", True), ("ann", False), ("ann", False), ("bob", False), ("bob", False), ("ann", True)]
        for who, begins in parts:
            scene.ledger.audit.downloaded(scene.run_id, "f" * 64, who=who, begins=begins, **told)
        entries = [one for one in scene.ledger.audit.of(scene.run_id) if one.verb == "read-evidence"]
        assert ["ann", "bob", "ann"] == [one.who for one in entries]
        assert {("evidence: report", "s3://b/k")} == {(one.subject, one.after["location"]) for one in entries}
        assert {"f" * 64} == {one.after["sha256"] for one in entries}
