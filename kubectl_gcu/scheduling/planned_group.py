"""The PodGroups of a manifest, as the controller would decide about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.cache import pods
from controller.cache.keys import full_name
from controller.cache.pod_groups import PodGroup, PodGroups
from dra_driver.model.claims.claim import Object


class PlannedGroups:
    """The groups of a manifest with their pods, none of which runs."""

    def __init__(self, groups: Iterable[Object], members: Sequence[Object]) -> None:
        self._groups = PodGroups()
        self._groups.follow(is_served=True)
        self._names = set[str]()
        for group in groups:
            name = full_name(group)
            self._names.add(name)
            planned = group | {"metadata": {"uid": f"planned {name}"} | group["metadata"]}
            self._groups.set_group(name, planned)
        for pod in members:
            self._groups.set_pod(full_name(pod), pod, has_claims=True)

    def group_of(self, pod: Object) -> PodGroup | None:
        """None for a pod whose group is not in the manifest."""
        return self._groups.group_of(pod) if pods.group_name(pod) in self._names else None
