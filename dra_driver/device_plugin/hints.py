"""The cards for which the scheduler extender placed pods that do not have their devices yet.

A hint is only a preference: the kubelet names no pod, so the preferred card may be meant for
another pod that requests as many devices.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from dra_driver.asks.limits import Ask, read_ask
from dra_driver.device_plugin.preference import Hint
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.devices.plugin_device import RESOURCES, PluginDevice
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED
from dra_driver.model.pci import PciAddress

Addresses = tuple[PciAddress, ...]
_Pod = Mapping[str, Any]


def hints(
    pods: Collection[_Pod], recorded: Collection[Recorded], mode: Mode, size: int
) -> list[Hint]:
    """A hint for each pod with a container that requests `size` devices of `mode` and has none on
    record yet. Pods of which another container has devices come first, because the kubelet admits
    all containers of a pod before the next pod. Otherwise in the order of `pods`."""
    found = []
    for pod in pods:
        ask = _open_ask(pod, recorded, mode, size)
        devices = _devices(pod, recorded, mode)
        cards = _cards_for_rest(_assigned(pod), devices, mode)
        if ask is not None and cards:
            found.append((not devices, Hint(cards, max(0, ask.peak - len(devices)))))
    return [hint for _, hint in sorted(found, key=lambda each: each[0])]


def is_requested(
    pods: Collection[_Pod], recorded: Collection[Recorded], mode: Mode, size: int
) -> bool:
    """Whether any of `pods` has a container that requests `size` devices of `mode` and has none on
    record yet. When the kubelet asks for them, the answer no means that the pod is not among
    `pods`."""
    return any(_open_ask(pod, recorded, mode, size) for pod in pods)


def _open_ask(pod: _Pod, recorded: Collection[Recorded], mode: Mode, size: int) -> Ask | None:
    """What a pod asks for that has such a container; None for any other pod."""
    try:
        ask = read_ask(pod, (RESOURCES[mode],))
    except Refused:  # no kubelet takes it on
        return None
    served = {each.container for each in recorded if each.pod == pod["metadata"]["uid"]}
    containers = ask.containers if ask is not None else ()
    return ask if any(c.amount == size and c.name not in served for c in containers) else None


def _cards_for_rest(
    assigned: Addresses, devices: Collection[PluginDevice], mode: Mode
) -> Addresses:
    """The cards for the other containers of a pod, the best first. Slices and instances: the cards
    of which it has devices, then the assigned ones. Whole cards: those that it does not have."""
    has = dict.fromkeys(device.card for device in sorted(devices))
    if mode is Mode.WHOLE:
        return tuple(card for card in assigned if card not in has)
    return tuple(dict.fromkeys((*has, *assigned)))


def _devices(pod: _Pod, recorded: Collection[Recorded], mode: Mode) -> set[PluginDevice]:
    found = set()
    for record in recorded:
        if record.pod == pod["metadata"]["uid"] and record.resource == RESOURCES[mode]:
            with suppress(InvalidValue):  # a former plugin served the resource
                found |= {PluginDevice.parse(text) for text in record.devices}
    return found


def _assigned(pod: _Pod) -> Addresses:
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ASSIGNED, "")
    try:
        return tuple(PciAddress.parse(part) for part in text.split(",") if part)
    except InvalidValue:  # anybody may write annotations
        return ()
