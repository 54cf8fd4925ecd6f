"""The kubelet lags behind the extender; each pod comes whole to a card with room all the same."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from dra_driver.device_plugin.inventory import CardInventory
from dra_driver.device_plugin.node_pods import NodePods
from dra_driver.device_plugin.preference import find_hints, prefer_share
from dra_driver.kube.api import Change
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED, RESOURCE_SHARED
from dra_driver.model.pci import PciAddress

CARDS = tuple(PciAddress(0, bus, 0, 0) for bus in range(8))
ROOM = 6


def placed(draw: random.Random) -> Iterator[tuple[Object, tuple[int, ...]]]:
    """Pods in the order in which they are bound, by best fit; some were made long before."""
    free = dict.fromkeys(CARDS, ROOM)
    for number in range(60):
        sizes = tuple(draw.choice((1, 1, 2, 3)) for _ in range(draw.choice((1, 1, 2))))
        fitting = [card for card in CARDS if free[card] >= sum(sizes)]
        if fitting:
            card = min(fitting, key=lambda each: (free[each], each))
            free[card] -= sum(sizes)
            made = number if draw.random() < 0.7 else number - draw.randint(1, 20)
            yield pod(f"pod-{number:02}", made, card, sizes), sizes


def pod(name: str, made: int, card: PciAddress, sizes: Sequence[int]) -> Object:
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": name,
            "creationTimestamp": f"{made + 100:05}",
            "annotations": {ANNOTATION_ASSIGNED: str(card)},
        },
        "spec": {
            "containers": [
                {"name": f"c{at}", "resources": {"limits": {RESOURCE_SHARED: str(size)}}}
                for at, size in enumerate(sizes)
            ]
        },
        "status": {"phase": "Pending"},
    }


class Kubelet:
    """Takes pods on in the order in which it hears of them, with what is preferred."""

    def __init__(self, pods: NodePods) -> None:
        self._pods = pods
        self._held: dict[PciAddress, set[int]] = {card: set() for card in CARDS}
        self._recorded: list[Recorded] = []

    def take_on(self, pod: Object, sizes: Sequence[int]) -> set[PciAddress]:
        """The cards that the pod's containers have."""
        found: set[PciAddress] = set()
        for at, size in enumerate(sizes):
            ids = self._preferred(size)
            assert ids, f"{pod['metadata']['name']} finds no room for {size}"
            for device in map(PluginDevice.parse, ids):
                self._held[device.card].add(device.ordinal)
                found.add(device.card)
            name = pod["metadata"]["uid"]
            self._recorded.append(Recorded(name, f"c{at}", RESOURCE_SHARED, frozenset(ids)))
        self._pods.on_event(Change.MODIFIED, pod | {"status": {"phase": "Running"}})
        return found

    def _preferred(self, size: int) -> list[str]:
        inventories = [
            CardInventory(card, Mode.SHARED, ROOM, frozenset(held), True, False, False, None)
            for card, held in self._held.items()
        ]
        available = [
            str(PluginDevice(card, Mode.SHARED, ordinal))
            for card, held in self._held.items()
            for ordinal in set(range(ROOM)) - held
        ]
        meant = find_hints(self._pods.waiting(), self._recorded, Mode.SHARED, size)
        return prefer_share(inventories, available, [], size, hints=meant)


@pytest.mark.parametrize("seed", range(40))
def test_each_pod_comes_whole_to_a_card_with_room(seed: int) -> None:
    draw = random.Random(seed)
    pods = NodePods()
    pods.on_replace([])
    kubelet = Kubelet(pods)
    behind: list[tuple[Object, tuple[int, ...]]] = []
    for each in placed(draw):
        pods.on_event(Change.ADDED, each[0])
        behind.append(each)
        while len(behind) > draw.randint(0, 12):
            assert len(kubelet.take_on(*behind.pop(0))) == 1
    for each in behind:
        assert len(kubelet.take_on(*each)) == 1
