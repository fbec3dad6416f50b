"""What a backfill asks of a reconciliation once it is through, and what came of that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from trueup.model.base import Name, Sha256, Value

ENDS = ("from", "to")
"""What stands for the ends of the backfill's window, beside its parameters."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Verify(Value):
    """The reconciliation that is run when everything was applied.

    Parameters that both jobs have are handed on. `params` says others: `{name}` in a text stands for a
    parameter of the backfill, `{from}` and `{to}` for the ends of its window.
    """

    job: Name
    params: dict[str, Any] = Field(default_factory=dict)

    def placeholders(self) -> Iterator[tuple[str, str]]:
        """Each placeholder with the parameter that it is in."""
        for name, given in self.params.items():
            for placeholder in _PLACEHOLDER.findall(given) if isinstance(given, str) else ():
                yield name, placeholder

    def filled(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """`params` with what is known put in; one that needs what is not known is left out."""
        missing = {name for name, placeholder in self.placeholders() if placeholder not in known}
        return {name: _filled(given, known) for name, given in self.params.items() if name not in missing}


def _filled(given: Any, known: Mapping[str, Any]) -> Any:
    if not isinstance(given, str):
        return given
    alone = _PLACEHOLDER.fullmatch(given)
    # Alone it keeps its type: a number is handed on as a number.
    return known[alone[1]] if alone else _PLACEHOLDER.sub(lambda found: str(known[found[1]]), given)


class VerifiedBy(Value):
    """The verification of a run: by which job, by which run of it, and what that found.

    Without a `runId` it was not begun; the verdict ERROR without one says that it could not be.
    `reportSha256` is that of the comparison.
    """

    job: Name
    run_id: str | None = None
    verdict: Literal["CLEAN", "DRIFT", "INCOMPLETE", "ERROR"] | None = None
    reasons: tuple[str, ...] = ()
    report_sha256: Sha256 | None = None

    def __str__(self) -> str:
        """As people read it."""
        if self.verdict is None:
            return f"{self.run_id} is at work" if self.run_id else "it was not begun"
        told = ": ".join([self.verdict, *self.reasons[:1]])
        return f"{told} ({self.run_id})" if self.run_id else told
