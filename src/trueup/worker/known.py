"""What was signed as known when a run was planned, as its tasks ask for it."""

from __future__ import annotations

from datetime import datetime

from trueup.artifacts import Artifacts
from trueup.compare import Finding, Key, State
from trueup.model.known import Known, KnownItem, PinnedKnown
from trueup.model.plan import ObjectRef


class Signed:
    """The differences that a plan names as known; there are few, and their number is bounded."""

    def __init__(self, words: PinnedKnown) -> None:
        self._of: dict[Key, list[tuple[KnownItem, Known]]] = {}
        for word in words.words:
            for item in word.items:
                self._of.setdefault(item.key, []).append((item, word.known))

    @classmethod
    def read(cls, artifacts: Artifacts, ref: ObjectRef | None) -> Signed:
        """From the object that the plan names. Raises ArtifactMissing, ArtifactError where it was changed."""
        if ref is None:
            return cls(PinnedKnown(words=()))
        return cls(PinnedKnown.model_validate_json(artifacts.check(ref.key, ref.sha256)))

    def word(self, finding: Finding, now: datetime) -> Known | None:
        """The word that a confirmed finding is known by at an instant: of several the one that lasts longest.

        The class and both rows have to be what was signed.
        """
        if finding.state is not State.CONFIRMED or finding.key is None:
            return None
        found = (finding.kind.value, finding.truth, finding.target)
        words = [
            known
            for item, known in self._of.get(finding.key, ())
            if (item.kind, item.truth, item.target) == found and now < known.until
        ]
        return max(words, key=lambda one: one.until, default=None)
