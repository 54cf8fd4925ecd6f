"""Detects another device plugin that gives this node's cards to pods, and pods that still have
cards from it (docs/adr/0032)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dra_driver.agent.events import first_named
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.card import Problem
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import RESOURCE_COUNT, TAINT_FOREIGN, VENDOR_PREFIX

_MOST_NAMED: Final = 3


def foreign_plugin(
    offered: Mapping[str, Iterable[str]], containers: Iterable[ContainerResources]
) -> tuple[Problem | None, int]:
    """The problem of all cards, if there is another plugin, and the number of pods that have
    devices of one. `offered` has the IDs of all plugins' devices by resource.

    A device of a resource ``enflame.com/…`` whose ID is not of this driver's form is another
    plugin's. It concerns all cards, because only that plugin knows which card is behind an ID.
    """
    resources = sorted(foreign_resources(offered))
    pods = sorted(set(_foreign_pods(containers)))
    text = ""
    if resources:
        text = (
            f"another device plugin gives the cards of this node to pods as "
            f"{', '.join(resources)}, and no claim gets these cards meanwhile; remove it, or "
            "keep this driver off the node"
        )
    elif pods:
        text = (
            "pods still have cards of this node from another device plugin, and no claim gets "
            f"these cards until they end: {first_named(pods, _MOST_NAMED)}"
        )
    return Problem(TAINT_FOREIGN, "", text) if text else None, len(pods)


def foreign_resources(devices: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """The resources of GCUs that have a device of another plugin; `devices` are IDs."""
    for resource, ids in devices.items():
        # The vendor's plugin only writes the count of cards into the Node's status.
        is_of_gcus = resource.startswith(VENDOR_PREFIX) and resource != RESOURCE_COUNT
        if is_of_gcus and not all(map(_is_ours, ids)):
            yield resource


def _foreign_pods(containers: Iterable[ContainerResources]) -> Iterator[str]:
    for container in containers:
        if any(foreign_resources(container.devices)):
            yield f"{container.namespace}/{container.pod}"


def _is_ours(device: str) -> bool:
    try:
        PluginDevice.parse(device)
    except InvalidValue:
        return False
    return True
