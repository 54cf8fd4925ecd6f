"""The extended resources by which somebody else's device plugin offers GCUs, by node."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.names import ANNOTATION_CARDS, RESOURCE_COUNT, VENDOR_PREFIX

_OF_THE_AGENT: Final = frozenset(RESOURCES.values())


def foreign_resources(node: Mapping[str, Any]) -> tuple[str, ...]:
    """The resources ``enflame.com/…`` that are allocatable on the Node, and are not this driver's.

    The kubelet sets what is allocatable to 0 as soon as the plugin ends; the agents judge by the
    same (`dra_driver.agent.cards.foreign_plugin`). The count of cards gives none, and agents have
    it registered. An agent that serves by the device plugin, as on a node whose kubelet is older
    than DRA, annotates its Node; there the vendor's three names are its own.
    """
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    names = {
        name
        for name, amount in allocatable.items()
        if name.startswith(VENDOR_PREFIX) and name != RESOURCE_COUNT and amount != "0"
    }
    if ANNOTATION_CARDS in (node["metadata"].get("annotations") or {}):
        names -= _OF_THE_AGENT
    return tuple(sorted(names))


class ForeignResources:
    """The handler of a watch of nodes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_node: dict[str, tuple[str, ...]] = {}
        self._is_synced = False

    def by_node(self) -> Mapping[str, tuple[str, ...]] | None:
        """By the names of nodes that have any; None until nodes were listed."""
        with self._lock:
            return dict(self._by_node) if self._is_synced else None

    def on_replace(self, items: Sequence[Object]) -> None:
        found = {each["metadata"]["name"]: foreign_resources(each) for each in items}
        with self._lock:
            self._by_node = {name: names for name, names in found.items() if names}
            self._is_synced = True

    def on_event(self, change: Change, obj: Object) -> None:
        name = obj["metadata"]["name"]
        names = () if change is Change.DELETED else foreign_resources(obj)
        with self._lock:
            if names:
                self._by_node[name] = names
            else:
                self._by_node.pop(name, None)
