"""What an image is on this machine: a program in a folder.

image of the definition ── Images.find ──► Image ── Image.argv ──► what the process is started with
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from trueup.local.ecs.errors import CannotStart

log = logging.getLogger(__name__)

WORKER = (sys.executable, "-m", "trueup.worker")


@dataclass(frozen=True, slots=True)
class Image:
    """How to start what an image holds: its ENTRYPOINT, CMD, WORKDIR and ENV, as processes know them.

    `digest` is the image's (`sha256:…`), where the reference does not name it already.
    """

    entrypoint: Sequence[str]
    folder: Path
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    digest: str | None = None
    name: str | None = None
    """What a container engine calls it."""

    def argv(self, entrypoint: Sequence[str] | None, command: Sequence[str] | None) -> list[str]:
        """The words of the process, given those of the container definition and its override.

        As Docker has it: an entry point of the definition's replaces the image's, and its CMD with it.
        """
        if entrypoint:
            return [*entrypoint, *(command or ())]
        return [*self.entrypoint, *(command or self.command)]


class Images(Protocol):
    """Where images come from."""

    async def pull(self, reference: str) -> Image:
        """The image of that reference. Raises CannotStart where it cannot be pulled."""


class KnownImages:
    """Images by their reference, by `sha256:…` alone, or by the reference without its digest or tag."""

    def __init__(self, images: Mapping[str, Image] | None = None) -> None:
        self._images = dict(images or {})

    def add(self, reference: str, image: Image) -> None:
        """Make an image known, or another one under its name."""
        self._images[reference] = image

    async def pull(self, reference: str) -> Image:
        """The image. Raises CannotStart where it is not known."""
        found = self.find(reference)
        if found is None:
            log.warning("Nothing is known of the image %s: give --image %s=FOLDER.", reference, reference)
            # The wording: developer guide, "CannotPullContainer task errors".
            raise CannotStart(
                "CannotPullContainerError: pull image manifest has been retried 1 time(s): "
                f"failed to resolve ref {reference}: {reference}: not found"
            )
        return found

    def find(self, reference: str) -> Image | None:
        """The image, by the most exact name that is known."""
        name, _, digest = reference.partition("@")
        exact = self._images.get(reference)
        return exact or (self._images.get(digest) if digest else self._images.get(_untagged(name)))


def worker_image(folder: Path, digest: str | None = None) -> Image:
    """The image of a trueup job whose code lies in `folder`: as its Dockerfile builds it."""
    return Image(
        entrypoint=WORKER,
        folder=folder,
        environment={"PYTHONUNBUFFERED": "1", "TRUEUP_CODE": str(folder)},
        digest=digest,
    )


def digest_of(reference: str, image: Image) -> str:
    """The image's digest, from the reference or from what the image says; empty where neither does."""
    return reference.partition("@")[2] or image.digest or ""


def _untagged(name: str) -> str:
    head, colon, tag = name.rpartition(":")
    return head if colon and "/" not in tag else name
