"""Clusters: names that tasks run under."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trueup.local.ecs.errors import ApiError, invalid
from trueup.local.ecs.names import DEFAULT_CLUSTER, Place, cluster_name, is_name


@dataclass(slots=True)
class Cluster:
    """A cluster, with the capacity providers that are associated with it."""

    name: str
    arn: str
    capacity_providers: list[str] = field(default_factory=list)
    default_strategy: list[dict[str, Any]] = field(default_factory=list)
    settings: list[dict[str, Any]] = field(default_factory=list)
    tags: list[dict[str, Any]] = field(default_factory=list)


class Clusters:
    """All clusters; `default` is there from the start (API reference, RunTask: "cluster")."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._clusters: dict[str, Cluster] = {}
        self.create(DEFAULT_CLUSTER)

    def __iter__(self) -> Iterator[Cluster]:
        return iter(self._clusters.values())

    def create(self, name: str | None, **given: list[Any]) -> Cluster:
        """Create one; asked again, give the one that is there. `given` are fields of Cluster.

        Raises ApiError where the name is none.
        """
        name = name or DEFAULT_CLUSTER
        if not is_name(name):
            raise invalid("Cluster name has letters, digits, - and _, at most 255.")
        if name not in self._clusters:
            self._clusters[name] = Cluster(name, self._place.cluster(name), **given)
        return self._clusters[name]

    def find(self, reference: str | None) -> Cluster:
        """By name or ARN, `default` by nothing. Raises ApiError (ClusterNotFoundException)."""
        found = self._clusters.get(cluster_name(reference))
        if found is None:
            raise ApiError("ClusterNotFoundException", "Cluster not found.")
        return found
