"""Detects another device plugin that gives this node's cards to pods, and pods that still have
cards from it (docs/adr/0032)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from dra_driver.agent.sources import ContainersSource
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.card import Problem
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import RESOURCE_COUNT, TAINT_FOREIGN, VENDOR_PREFIX

_MOST_NAMED: Final = 3


class ForeignPluginDetector:
    """Asks the kubelet which plugins serve it, and which containers have devices.

    A device of a resource ``enflame.com/…`` whose ID is not of this driver's form is another
    plugin's. `problem` then concerns all cards, because only that plugin knows which card is behind
    an ID.
    """

    def __init__(
        self, offered: Callable[[], Mapping[str, Iterable[str]]], containers: ContainersSource
    ) -> None:
        """`offered` gives the IDs of all plugins' devices by resource; it raises KubeletError."""
        self._offered = offered
        self._containers = containers
        self.problem: Problem | None = None
        self.pod_count = 0  # of pods that have devices of another plugin

    def detect(self) -> None:
        """Ask once. Raises KubeletError; then `problem` and `pod_count` stay as they are."""
        offered = sorted(foreign_resources(self._offered()))
        pods = sorted(set(_foreign_pods(self._containers())))
        self.pod_count = len(pods)
        if offered:
            self.problem = _problem(
                f"another device plugin gives the cards of this node to pods as "
                f"{', '.join(offered)}, and no claim gets these cards meanwhile; remove it, or "
                "keep this driver off the node"
            )
        elif pods:
            self.problem = _problem(
                "pods still have cards of this node from another device plugin, and no claim gets "
                f"these cards until they end: {_shown(pods)}"
            )
        else:
            self.problem = None


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


def _shown(pods: list[str]) -> str:
    more = f" and {len(pods) - _MOST_NAMED} more" if len(pods) > _MOST_NAMED else ""
    return ", ".join(pods[:_MOST_NAMED]) + more


def _problem(text: str) -> Problem:
    return Problem(TAINT_FOREIGN, "", text)
