"""For which cards pods were placed on this node, as long as they have not got their devices.

A preference, and nothing else: the kubelet asks for a container and names no pod, so of several
pods that ask for as much it may be another one's card that is preferred. What is held is known by
devices alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED
from dra_driver.model.pci import PciAddress
from dra_driver.model.plugin_device import RESOURCES
from dra_driver.model.quantity import parse_quantity

Cards = tuple[PciAddress, ...]


def hinted_cards(
    pods: Collection[Mapping[str, Any]], recorded: Collection[Recorded], mode: Mode, size: int
) -> list[Cards]:
    """The cards of each pod of which a container asks for `size` devices of `mode` and has none on
    record yet; the oldest pod's first, in which order the kubelet takes them on."""
    served = {(each.pod, each.container) for each in recorded}
    return [
        cards
        for pod in sorted(pods, key=_age)
        if (cards := _assigned(pod))
        and any((pod["metadata"]["uid"], name) not in served for name in _asking(pod, mode, size))
    ]


def _age(pod: Mapping[str, Any]) -> tuple[str, str]:
    metadata = pod["metadata"]
    return str(metadata.get("creationTimestamp", "")), str(metadata["name"])


def _assigned(pod: Mapping[str, Any]) -> Cards:
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ASSIGNED, "")
    try:
        return tuple(PciAddress.parse(part) for part in text.split(",") if part)
    except InvalidValue:  # anybody may write annotations
        return ()


def _asking(pod: Mapping[str, Any], mode: Mode, size: int) -> Iterator[str]:
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        limits = (container.get("resources") or {}).get("limits") or {}
        text = str(limits.get(RESOURCES[mode], "0"))
        try:
            if parse_quantity(text) == size:
                yield container["name"]
        except InvalidValue:
            continue
