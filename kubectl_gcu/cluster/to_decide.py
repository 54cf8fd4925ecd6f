"""What the allocator reads to decide about a waiting pod, and in words what it cannot read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.allocator.taints import with_selector
from controller.write.volumes import read_volumes
from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object

_READ: Final = (RESOURCE_SLICES, DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, PODS)
_TAINT_RULES_ON: Final = (1, 37)


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """`objects` is all that the allocator reads, empty if one kind cannot be read. `volumes` are
    node selectors of the pod's volumes. `unread` says what is not there, or the user may not
    read."""

    objects: Mapping[Resource, tuple[Object, ...]]
    volumes: Sequence[Object] = ()
    unread: tuple[str, ...] = ()


def observe_cluster(api: Api, pod: Object) -> ObservedCluster:
    """All that is read to decide about the pod."""
    objects, no_objects = objects_to_decide(api)
    volumes, no_volumes = _volumes_of(api, pod) if objects else ((), "")
    return ObservedCluster(objects, volumes, tuple(filter(None, (no_objects, no_volumes))))


def objects_to_decide(api: Api) -> tuple[dict[Resource, tuple[Object, ...]], str]:
    """All that the allocator reads, or nothing; and what is not there, or the user may not read."""
    objects: dict[Resource, tuple[Object, ...]] = {}
    for resource in _READ:
        try:
            objects[resource] = tuple(api.list(resource).items)
        except NotFound:
            return {}, f"the API server has no {resource.plural} of {resource.api_version}"
        except Forbidden:
            return {}, (
                f"you may not list {resource.plural} in the whole cluster, so the reason is that "
                "of the controller's last event"
            )
    rules, no_rules = taint_rules(api)
    namespaces, no_namespaces = _namespaces(api)
    unread = "; ".join(filter(None, (no_rules, no_namespaces)))
    return objects | {DEVICE_TAINT_RULES: rules, NAMESPACES: namespaces}, unread


def _volumes_of(api: Api, pod: Object) -> tuple[Sequence[Object], str]:
    """Node selectors of the pod's volumes."""
    try:
        return read_volumes(api, pod).selectors, ""
    except Forbidden:
        return (), (
            "you may not get the pod's persistentvolumeclaims and their persistentvolumes: nodes "
            "where these are not count as well"
        )


def _namespaces(api: Api) -> tuple[tuple[Object, ...], str]:
    try:
        return tuple(api.list(NAMESPACES).items), ""
    except Forbidden:
        return (), (
            "you may not list namespaces: what pods' affinity selects by labels of namespaces is "
            "not considered"
        )


def taint_rules(api: Api) -> tuple[tuple[Object, ...], str]:
    """The DeviceTaintRules as v1 writes them, none where the server has no such kind (1.36 has it
    off)."""
    for resource in (DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1BETA2):
        try:
            rules = api.list(resource).items
        except NotFound:
            continue
        except Forbidden:  # the answer for a kind that the server does not have, too
            return (), rules_unread(api.server_version())
        if resource is DEVICE_TAINT_RULES_V1BETA2:
            rules = tuple(map(with_selector, rules))
        return tuple(rules), ""
    return (), ""


def rules_unread(version: ServerVersion) -> str:
    """That the user may not list DeviceTaintRules; empty for a version that has them off."""
    if (version.major, version.minor) < _TAINT_RULES_ON:
        return ""
    return (
        f"you may not list {DEVICE_TAINT_RULES.plural} in the whole cluster: devices that one of "
        "them taints count as free"
    )
