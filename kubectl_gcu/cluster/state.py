"""What the user may read of the cluster, and in words what not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from controller.cache.pods import group_name
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.preflight import OLDEST
from dra_driver.kube.resources import (
    DEVICE_TAINT_RULES,
    NODES,
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from kubectl_gcu.cluster.to_decide import taint_rules

_UNSEEN = {
    RESOURCE_SLICES: (
        "of nodes that serve claims only held cards are shown, without their size and health"
    ),
    NODES: "cards of nodes that serve limits are not shown",
    RESOURCE_CLAIMS: "cards may be fuller than they look, and holders are missing",
    PODS: "pods and containers of holders are missing",
    POD_GROUPS: "how many pods a group needs is not shown",
}


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Objects as the API server has them. `missing` has a sentence for each kind that the user may
    not read, with what is therefore not seen."""

    slices: tuple[Object, ...] = ()
    claims: tuple[Object, ...] = ()
    nodes: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    missing: Mapping[Resource, str] = field(default_factory=dict)
    rules: tuple[Object, ...] = ()
    """DeviceTaintRules."""
    groups: tuple[Object, ...] = ()
    """PodGroups; read where a pod names one."""


def unreadable(resource: Resource, *, namespace: str | None = None) -> str:
    """That the user may not list the kind in all namespaces, and what is therefore not seen;
    `namespace` is one where he may not list it either."""
    where = " in all namespaces" if resource.namespaced else ""
    if namespace is not None:
        where = f", not even in the namespace {namespace}"
    return f"you may not list {resource.plural}{where}: {_UNSEEN[resource]}"


def read_cluster(api: Api, namespace: str) -> ClusterState:
    """Read what there is; where the user may not read a kind in all namespaces, that of
    `namespace`. Raises KubeError where the server does not answer."""
    reader = _Reader(api, namespace)
    version = api.server_version()
    # Asked for a kind that it does not know, a server first says who may not read it.
    has_dra = (version.major, version.minor) >= OLDEST
    of_driver = f"spec.driver={DRIVER}"
    rules, unread = taint_rules(api) if has_dra else ((), "")
    if unread:
        reader.missing[DEVICE_TAINT_RULES] = unread
    found = ClusterState(
        slices=reader.read(RESOURCE_SLICES, field_selector=of_driver) if has_dra else (),
        claims=reader.read(RESOURCE_CLAIMS) if has_dra else (),
        nodes=reader.read(NODES),
        pods=reader.read(PODS),
        missing=reader.missing,
        rules=rules,
    )
    if not any(map(group_name, found.pods)):
        return found
    return replace(found, groups=reader.read(POD_GROUPS, POD_GROUPS_V1BETA1))


class _Reader:
    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self.missing: dict[Resource, str] = {}

    def read(self, *versions: Resource, field_selector: str = "") -> tuple[Object, ...]:
        """None where the server has none of the versions: DRA, for one, can be switched off."""
        try:
            return self._list(versions, field_selector=field_selector)
        except Forbidden:
            resource = versions[0]
        self.missing[resource] = unreadable(resource)
        if not resource.namespaced:
            return ()
        try:
            return self._list(versions, namespace=self._namespace)
        except Forbidden:
            self.missing[resource] = unreadable(resource, namespace=self._namespace)
            return ()

    def _list(
        self, versions: Sequence[Resource], *, namespace: str = "", field_selector: str = ""
    ) -> tuple[Object, ...]:
        for resource in versions:
            with suppress(NotFound):
                found = self._api.list(resource, namespace=namespace, field_selector=field_selector)
                return tuple(found.items)
        return ()
