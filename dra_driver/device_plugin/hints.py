"""The cards for which the scheduler extender placed pods that do not have their devices yet.

A hint is only a preference: the kubelet names no pod, so the preferred card may be meant for
another pod that requests as many devices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from dra_driver.device_plugin.preference import Hint
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.devices.plugin_device import RESOURCES, PluginDevice
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED
from dra_driver.model.pci import PciAddress
from dra_driver.model.quantity import parse_quantity

Cards = tuple[PciAddress, ...]
_Pod = Mapping[str, Any]


def hints(
    pods: Collection[_Pod], recorded: Collection[Recorded], mode: Mode, size: int
) -> list[Hint]:
    """A hint for each pod with a container that requests `size` devices of `mode` and has none on
    record yet. Pods of which another container has devices come first, because the kubelet admits
    all containers of a pod before the next pod. Otherwise in the order of `pods`."""
    found = []
    for pod in pods:
        if not _is_open(pod, recorded, mode, size):
            continue
        devices = _devices(_recorded_of(pod, recorded), mode)
        cards = _cards_for_rest(_assigned(pod), devices, mode)
        if cards:
            needed = max(0, _peak(list(_requests(pod, mode))) - len(devices))
            found.append((not devices, Hint(cards, needed)))
    return [hint for _, hint in sorted(found, key=lambda each: each[0])]


def is_requested(
    pods: Collection[_Pod], recorded: Collection[Recorded], mode: Mode, size: int
) -> bool:
    """Whether any of `pods` has a container that requests `size` devices of `mode` and has none on
    record yet. When the kubelet asks for them, the answer no means that the pod is not among
    `pods`."""
    return any(_is_open(pod, recorded, mode, size) for pod in pods)


def _is_open(pod: _Pod, recorded: Collection[Recorded], mode: Mode, size: int) -> bool:
    served = {each.container for each in _recorded_of(pod, recorded)}
    return any(amount == size and name not in served for name, amount, _ in _requests(pod, mode))


def _recorded_of(pod: _Pod, recorded: Collection[Recorded]) -> list[Recorded]:
    return [each for each in recorded if each.pod == pod["metadata"]["uid"]]


def _cards_for_rest(assigned: Cards, devices: Collection[PluginDevice], mode: Mode) -> Cards:
    """The cards for the other containers of a pod, the best first. Slices and instances: the cards
    of which it has devices, then the assigned ones. Whole cards: those that it does not have."""
    has = dict.fromkeys(device.card for device in sorted(devices))
    if mode is Mode.WHOLE:
        return tuple(card for card in assigned if card not in has)
    return tuple(dict.fromkeys((*has, *assigned)))


def _devices(recorded: Collection[Recorded], mode: Mode) -> set[PluginDevice]:
    found = set()
    for each in recorded:
        if each.resource == RESOURCES[mode]:
            with suppress(InvalidValue):  # a former plugin served the resource
                found |= {PluginDevice.parse(text) for text in each.devices}
    return found


def _assigned(pod: _Pod) -> Cards:
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ASSIGNED, "")
    try:
        return tuple(PciAddress.parse(part) for part in text.split(",") if part)
    except InvalidValue:  # anybody may write annotations
        return ()


def _requests(pod: _Pod, mode: Mode) -> Iterator[tuple[str, int, bool]]:
    """Each container that requests devices, in the order in which they start: its name, its amount,
    and whether it ends before the next one starts."""
    spec = pod["spec"]
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            limits = (container.get("resources") or {}).get("limits") or {}
            try:
                amount = int(parse_quantity(str(limits.get(RESOURCES[mode], "0"))))
            except InvalidValue:
                continue
            if amount:
                ends = kind == "initContainers" and container.get("restartPolicy") != "Always"
                yield container["name"], amount, ends


def _peak(requests: Collection[tuple[str, int, bool]]) -> int:
    """The largest amount that the pod has at one time."""
    highest = running = 0
    for _, amount, ends in requests:
        highest = max(highest, running + amount)
        running += 0 if ends else amount
    return highest
