"""Jobs as the local ECS runs them: images, and task definitions for jobs that the template does not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from trueup.jobfile import catalogue, load
from trueup.local.aws import REGION
from trueup.local.ecs import Build, Image, KnownImages, worker_image
from trueup.local.ecs.containers import pack
from trueup.model.base import sha256
from trueup.model.jobs import AnyJob

MODES = ("read", "write")


@dataclass(frozen=True)
class JobFolder:
    """A job and the folder of its code, which stands for its image."""

    job: AnyJob
    folder: Path

    @cached_property
    def digest(self) -> str:
        """Of the files of its code, as they were when it was first asked for: other code, other image.

        What Python compiled stays out, and so do hidden files.
        """
        found = ((path.relative_to(self.folder), path) for path in self.folder.rglob("*") if path.is_file())
        parts = sorted((bytes(name), sha256(path.read_bytes())) for name, path in found if _is_code(name))
        together = b"\0".join(part for name, digest in parts for part in (name, digest.encode()))
        return f"sha256:{sha256(together)}"

    @property
    def image(self) -> str:
        """The reference to its image."""
        return f"local/{self.job.name}@{self.digest}"

    @property
    def parameter(self) -> str:
        """The template's parameter for the image."""
        return "".join(word.capitalize() for word in self.job.name.split("-")) + "Image"


def _is_code(name: Path) -> bool:
    return not any(part == "__pycache__" or part.startswith(".") for part in name.parts)


def find_jobs(*roots: Path) -> dict[str, JobFolder]:
    """The jobs of `containers/*/job.yaml` under some folders. Raises UsageError."""
    found: dict[str, JobFolder] = {}
    for root in roots:
        # It says all that is wrong with any of them at once.
        catalogue(root, {name: one.job for name, one in found.items()})
        for path in sorted(root.glob("containers/*/job.yaml")):
            made = JobFolder(load(path), path.parent.resolve())
            found[made.job.name] = made
    return found


def images_of(jobs: Mapping[str, JobFolder], others: Mapping[str, Path]) -> KnownImages:
    """What the references of the jobs' images stand for, and those of others that are a folder."""
    own = {name: Image(entrypoint=(), folder=folder.resolve()) for name, folder in others.items()}
    return KnownImages(own | {one.image: worker_image(one.folder) for one in jobs.values()})


def builds_of(jobs: Mapping[str, JobFolder], root: Path) -> dict[str, Build]:
    """How the images of jobs are built that have a Dockerfile, with the project under `root` as context.

    Other contents, also of trueup's own, make another tag.
    """
    shared = {
        "requirements/worker.lock": root / "requirements/worker.lock",
        "requirements/parquet.lock": root / "requirements/parquet.lock",
        "src/trueup": root / "src/trueup",
    }
    builds = {}
    for one in jobs.values():
        if (one.folder / "Dockerfile").exists():
            place = f"containers/{one.folder.name}"
            files = {**shared, place: one.folder}
            tag = f"trueup/{one.job.name}:{sha256(pack(files))[:12]}"
            builds[one.image] = Build(tag, f"{place}/Dockerfile", files)
    return builds


def register(own: Any, stack: str, one: JobFolder, environment: Mapping[str, str], logs: str) -> None:
    """Register both task definitions of a job, as template.yaml would have them.

    `own` is an ECS client, `logs` the log group of the tasks.
    """
    task = one.job.task
    for mode in MODES:
        names: Mapping[str, str] = getattr(one.job.secrets, mode)
        own.register_task_definition(
            family=f"{stack}-{one.job.name}-{mode}",
            requiresCompatibilities=["FARGATE"],
            networkMode="awsvpc",
            cpu=str(task.cpu),
            memory=str(task.memory),
            containerDefinitions=[
                {
                    "name": "job",
                    "image": one.image,
                    "essential": True,
                    "stopTimeout": task.stop_seconds,
                    "logConfiguration": {
                        "logDriver": "awslogs",
                        "options": {
                            "awslogs-group": logs,
                            "awslogs-region": REGION,
                            "awslogs-stream-prefix": f"{one.job.name}-{mode}",
                        },
                    },
                    "environment": [{"name": name, "value": value} for name, value in environment.items()],
                    "secrets": [
                        {"name": f"SECRET_{name.upper().replace('-', '_')}", "valueFrom": secret}
                        for name, secret in names.items()
                    ],
                }
            ],
        )
