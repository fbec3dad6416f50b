"""Fargate on one machine: tasks are processes or containers, behind the ECS API that boto3 speaks.

    api/                    the operations, the agent's and metadata endpoints of tasks, the admin endpoint
    fargate                 the tasks: started, known, stopped
    run_request             a call of RunTask, checked in AWS's words
    tasks, life             the states of one task, and its way through them
    service_book            the services; their calls are checked in service_request
    scheduler, scheduling   what looks after a service, and what it decides
    services                a service and its deployments; told by service_describing
    protection              which tasks a service may not end
    definitions, clusters   what tasks are started from
    images, environment     what a container is here: a program in a folder, and what it finds
    awslogs                 what containers write, sent to CloudWatch Logs
    launching, processes, _nursery      the port to processes, and the parent that none of them outlives
    containers, engine      the same port to containers of a Docker-compatible engine
    faults                  what shall go wrong: the port to a rule
    describing, metadata    a task as told by the API, in an event, and to itself; what it uses: stats

What is not implemented is refused with a sentence that says so. Time, images, secrets, faults, the launcher
and the taker of state changes are handed in.
"""

from __future__ import annotations

from trueup.local.ecs.containers import Build, Containers
from trueup.local.ecs.errors import ApiError
from trueup.local.ecs.faults import REFUSALS, Fate, Faults, Launch, NoFaults, Refusal
from trueup.local.ecs.images import Image, Images, KnownImages, worker_image
from trueup.local.ecs.processes import WARM
from trueup.local.ecs.server import Ecs, Options, serve

__all__ = [
    "Ecs",
    "Options",
    "serve",
    "WARM",
    "Image",
    "Images",
    "KnownImages",
    "worker_image",
    "Fate",
    "Faults",
    "Launch",
    "NoFaults",
    "REFUSALS",
    "Refusal",
    "ApiError",
    "Build",
    "Containers",
]
