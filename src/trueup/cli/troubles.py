"""`python -m trueup.cli.troubles` writes docs/errors.md: each error, problem and exit, and what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from trueup import errors
from trueup.cli import exits
from trueup.errors import TrueupError
from trueup.exits import Exit
from trueup.handling.api.problems import KINDS, problem_of

FILE = Path(__file__).parents[3] / "docs" / "errors.md"

_INTRO = """\
# What went wrong

Every error says what happened, to which thing, and what to do now.
This page lists them all: what each one means, and what to do where the message is not at hand.

The command line says errors on standard error, in one message; `TRUEUP_DEBUG=1` shows where in the code it came from.
[The API](api.md) says them as problem documents, a run that has ended in [its report](cli.md#trueup-report).

This page is made by `python -m trueup.cli.troubles`.
"""

DO: Mapping[type[TrueupError], str] = {
    errors.TrueupError: "Do what the message says; this is the root of all others.",
    errors.UsageError: "Correct what the message names, and ask again.",
    errors.JobFileError: "Correct the line, and run `trueup validate`.",
    errors.RequestError: "Correct the field, and ask again; the same `requestId` may be used.",
    errors.NotFound: "Look for its name with `trueup status`, `trueup jobs` or `trueup partitions`.",
    errors.Refused: "Compare what was wanted with what was found: both are in the message.",
    errors.RunClosed: "Nothing: a task that meets it leaves with 75, and whoever closed the run goes on.",
    errors.LostOwnership: "Nothing: the task stops, and the one that holds the partition goes on.",
    errors.NotTakable: "Nothing: the task goes on with its next partition.",
    errors.LaunchTaken: "Nothing: the task leaves, and the one that registered first does the work.",
    errors.LockHeld: "Wait for the run that it names, or give a window that does not overlap its own.",
    errors.Stale: "Ask again. Where it comes back each time, report it: somebody writes without an end.",
    errors.GateRefused: "Read which rule refused it; the gate itself is as it was.",
    errors.NotAnApprover: "Ask somebody with one of the roles that the job lists under `approval`.",
    errors.OwnRequest: "Ask somebody else: whoever asked for the run does not approve it.",
    errors.OtherSubject: "Look at what waits now, and decide about that hash.",
    errors.OtherRun: "Name the run that the approval was given for, or have this one approved.",
    errors.AlreadyDecided: "Look at the trail with `trueup audit RUN`: an approval serves once.",
    errors.ApprovalExpired: "Start the run again, and decide in time.",
    errors.NotApproved: "Have it approved first.",
    errors.NotOnTrail: "Begin nothing: find out who wrote to the ledger, and report it.",
    errors.StoreUnavailable: "Ask again: it is safe, and done at most once. Where it stays, look at AWS's health.",
    errors.ArtifactError: "Look at the object that it names.",
    errors.ArtifactExists: "Look who else writes to the bucket: trueup writes an object once.",
    errors.ArtifactMissing: "Look whether a lifecycle rule removed it; a plan that is gone cannot be resumed.",
    errors.SourceError: "Correct the source's declaration, or the data that it names; then compare again.",
    errors.JobError: "Correct the job's code: the message names the rule, and the partition its record.",
    errors.Throttled: "Nothing; where it goes on for hours, run fewer tasks at once.",
    errors.Transient: "Look at the other side where partitions end as STUCK.",
    errors.Superseded: "Nothing: the task leaves, and the newer one goes on.",
    errors.LocalStackError: "Start `trueup up` again; the message says which part, and where its log is.",
}

PROBLEMS: Mapping[str, str] = {
    "wrong-request": "Correct what `field` names.",
    "unsigned": "Sign the call; a role needs `execute-api:Invoke`.",
    "forbidden": "Let a person decide whom the remedy names; `--as` is another one on the local stack.",
    "not-found": "List what there is: `GET /runs`, `GET /jobs`.",
    "no-route": "Correct the path; the remedy lists them all.",
    "no-method": "Use one of the methods in the header `allow`.",
    "refused": "Look at the run that the detail names, then ask again.",
    "fault": "Look at the API's log group for the traceback, and report it.",
    "unavailable": "Ask again with the same `requestId`: at most one run is started.",
}

EXITS: Mapping[int, tuple[str, str]] = {
    exits.DONE: ("it was done; a run that `status` shows goes on, or succeeded", ""),
    exits.FAILED: (
        "the run failed or was aborted, drift was found, or the command could not do what it was asked",
        "Read the message, or `trueup report RUN`.",
    ),
    exits.USAGE: ("the input is wrong, or there is no such thing; nothing was created", "Correct it."),
    exits.WAITS: ("the run waits for a person", "`trueup status RUN` says for what."),
    exits.INCOMPLETE: (
        "not everything was done or compared: the run was cancelled, or its report is not there yet",
        "Wait for its end with `trueup status RUN --watch`, or start another run.",
    ),
    exits.INTERRUPTED: ("Ctrl-C", "What was started goes on; `trueup status` shows it."),
}

TASK_EXITS: Mapping[Exit, tuple[str, str]] = {
    Exit.DONE: ("the slice is finished and its result stored, good or bad", ""),
    Exit.BAD_INPUT: (
        "the input is wrong; the unfinished partitions of its slice are FAILED",
        "Read its log: `trueup logs RUN --partition P`.",
    ),
    Exit.FAULT: (
        "a bug, or no progress",
        "Nothing at first: it is launched again. Twice without progress, the partition is STUCK.",
    ),
    Exit.INTERRUPTED: ("interrupted, progress saved, work remains", "Nothing: it is launched again."),
}

PARTITIONS: Mapping[str, tuple[str, str]] = {
    "Refused": (
        "what its task reported does not add up, or is not what the ledger and S3 say",
        "Read the rule that it names in [the contract](contract.md); mend the job.",
    ),
    "TooManyRejects": (
        "more records were rejected or refused than `errors` in the job file allows",
        "`trueup rejects RUN --partition P`; mend data or job.",
    ),
    "NoProgress": (
        "two tasks in a row took it and left without a checkpoint",
        "`trueup logs RUN --partition P`: the last task's own words.",
    ),
    "SliceStuck": (
        "three partitions of its slice got stuck in a row, so it was not tried",
        "Look at the first of these: the other side is dead, or the code is wrong.",
    ),
    "NeverStarted": (
        "two launches ended before any partition was taken",
        "Look at what ECS says, which is in the message: image, role, secrets.",
    ),
    "BadInput": ("a task said that its input is wrong (exit 64)", "Read the message; correct the request."),
}


def text() -> str:
    """The page as the code has it now."""
    return "\n".join(
        [
            _INTRO,
            *_section("How the command line exits", ("exit", "meaning", "what to do"), _exits(EXITS)),
            *_section("How tasks exit", ("exit", "meaning", "what to do"), _exits(TASK_EXITS)),
            *_section("Problems of the API", ("type", "status", "meaning", "what to do"), _problems()),
            *_section("Why a partition failed", ("kind", "meaning", "what to do"), _partitions()),
            "Any other kind is the class of an error that the job's code raised: the message has the record.\n",
            *_section("Errors", ("error", "exit", "problem", "meaning", "what to do"), _errors()),
            "A line that begins with `·` is a kind of the error above it.\n",
        ]
    )


def _section(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"## {title}\n"
    for row in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(row)} |"
    yield ""


def _exits(codes: Mapping[int, tuple[str, str]] | Mapping[Exit, tuple[str, str]]) -> Iterator[Sequence[str]]:
    for code, (meaning, do) in codes.items():
        yield f"{int(code)}", meaning, do


def _problems() -> Iterator[Sequence[str]]:
    for kind in KINDS:
        yield f"`urn:trueup:problem:{kind.name}`", f"{kind.status}", kind.title, PROBLEMS[kind.name]


def _partitions() -> Iterator[Sequence[str]]:
    for kind, (meaning, do) in PARTITIONS.items():
        yield f"`{kind}`", meaning, do


def _errors() -> Iterator[Sequence[str]]:
    for error, depth in family():
        # As a docstring has it: the first sentence, on however many lines.
        meaning = " ".join((error.__doc__ or "").partition("\n\n")[0].split())
        problem = problem_of(error("")).type.rpartition(":")[2]
        yield f"{'· ' * depth}`{error.__name__}`", f"{exits.of_error(error(''))}", problem, meaning, DO[error]


def family(root: type[TrueupError] = TrueupError, depth: int = 0) -> Iterator[tuple[type[TrueupError], int]]:
    """The tree of errors.py from its root, each error before its kinds, with how deep it is."""
    yield root, depth
    for kind in root.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield from family(kind, depth + 1)


def main() -> None:
    """Write the page, and name it."""
    FILE.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{FILE}\n")


if __name__ == "__main__":
    main()
