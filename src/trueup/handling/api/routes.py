"""The routes, one row each. Whoever adds a verb adds a function and a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic.alias_generators import to_snake

from trueup.handling.api import verbs
from trueup.model.base import Value
from trueup.model.estimate import Estimate
from trueup.model.evidence import CheckedEvidence, EvidencePart
from trueup.model.known import Known, KnownList, KnownWord, WithdrawWord
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.repair import RepairReport
from trueup.model.report import Report
from trueup.model.request import StartBody, Wish
from trueup.model.view import (
    AuditList,
    GateList,
    GateView,
    GateWord,
    JobList,
    LogList,
    PartitionList,
    Pending,
    RejectList,
    RunDetail,
    RunList,
    Started,
)

_NOT_FOUND, _REFUSED = 404, 409
LONGEST_PART = 256
"""No run and no gate has a name with more characters; with many more, no key of the ledger can be made."""


@dataclass(frozen=True)
class Route:
    """One route: `answers` are its documents by status, `problems` the statuses that not all routes have.

    `html`: the first of the documents can be had as a page too.
    """

    method: str
    path: str
    do: Callable[..., Value]
    answers: Mapping[int, type[Value]]
    query: type[Value] | None = None
    body: type[Value] | None = None
    problems: tuple[int, ...] = ()
    html: bool = False

    @property
    def name(self) -> str:
        """What it is called, as `list_runs` is `listRuns`."""
        first, *rest = self.do.__name__.split("_")
        return first + "".join(word.capitalize() for word in rest)

    @property
    def summary(self) -> str:
        """What it does, as its function says."""
        return (self.do.__doc__ or "").strip().splitlines()[0]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Which paths are its own."""
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path))

    def takes(self, path: str) -> dict[str, Any] | None:
        """The parts of a path that it names, in Python's names; None where the path is another's."""
        found = self.pattern.fullmatch(path)
        return None if found is None else {to_snake(name): part for name, part in found.groupdict().items()}


ROUTES = (
    Route("GET", "/jobs", verbs.list_jobs, {200: JobList}),
    Route("POST", "/estimate", verbs.estimate, {200: Estimate}, body=Wish),
    Route("POST", "/runs", verbs.start_run, {202: Started}, body=StartBody, problems=(_NOT_FOUND, _REFUSED)),
    Route("GET", "/runs", verbs.list_runs, {200: RunList}, query=verbs.RunsQuery),
    Route("GET", "/runs/{runId}", verbs.show_run, {200: RunDetail}, problems=(_NOT_FOUND,)),
    Route(
        "GET",
        "/runs/{runId}/partitions",
        verbs.list_partitions,
        {200: PartitionList},
        query=verbs.PartitionsQuery,
        problems=(_NOT_FOUND,),
    ),
    Route(
        "GET",
        "/runs/{runId}/rejects",
        verbs.list_rejects,
        {200: RejectList},
        query=verbs.RejectsQuery,
        problems=(_NOT_FOUND,),
    ),
    Route(
        "GET",
        "/runs/{runId}/logs",
        verbs.show_logs,
        {200: LogList},
        query=verbs.LogsQuery,
        problems=(_NOT_FOUND,),
    ),
    Route(
        "GET",
        "/runs/{runId}/report",
        verbs.show_report,
        {200: Report, 202: Pending},
        html=True,
        problems=(_NOT_FOUND,),
    ),
    Route(
        "GET",
        "/runs/{runId}/evidence",
        verbs.show_evidence,
        {200: CheckedEvidence},
        query=verbs.EvidenceQuery,
        problems=(_NOT_FOUND,),
    ),
    Route(
        "GET",
        "/runs/{runId}/evidence/{digest}",
        verbs.show_evidence_object,
        {200: EvidencePart},
        query=verbs.EvidencePartQuery,
        problems=(_NOT_FOUND,),
    ),
    Route(
        "GET",
        "/runs/{runId}/comparison",
        verbs.show_comparison,
        {200: ReconcileReport, 202: Pending},
        html=True,
        problems=(_NOT_FOUND,),
    ),
    Route(
        "GET",
        "/runs/{runId}/repair",
        verbs.show_repair,
        {200: RepairReport, 202: Pending},
        html=True,
        problems=(_NOT_FOUND,),
    ),
    Route(
        "GET",
        "/runs/{runId}/audit",
        verbs.show_audit,
        {200: AuditList},
        query=verbs.AuditQuery,
        problems=(_NOT_FOUND,),
    ),
    Route("GET", "/gates", verbs.list_gates, {200: GateList}),
    Route("GET", "/runs/{runId}/gates", verbs.show_gates, {200: GateList}, problems=(_NOT_FOUND,)),
    Route(
        "POST",
        "/runs/{runId}/gates/{name}/approve",
        verbs.approve,
        {200: GateView},
        body=GateWord,
        problems=(_NOT_FOUND, _REFUSED),
    ),
    Route(
        "POST",
        "/runs/{runId}/gates/{name}/reject",
        verbs.reject,
        {200: GateView},
        body=GateWord,
        problems=(_NOT_FOUND, _REFUSED),
    ),
    Route("GET", "/known", verbs.list_known, {200: KnownList}, query=verbs.KnownQuery),
    Route(
        "POST",
        "/runs/{runId}/known",
        verbs.sign_known,
        {200: Known},
        body=KnownWord,
        problems=(_NOT_FOUND, _REFUSED),
    ),
    Route(
        "POST",
        "/runs/{runId}/known/{knownId}/withdraw",
        verbs.withdraw_known,
        {200: Known},
        body=WithdrawWord,
        problems=(_NOT_FOUND,),
    ),
)
