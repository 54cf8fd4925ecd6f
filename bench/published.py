"""Nodes without kubelets in a real API server, and the devices that drivers publish for them.

The devices are the same, 8 cards a node and 3 devices a card, in the order in which agents publish
them. Ours have the taint that keeps kube-scheduler away; those of a twin driver do not; and ours
exclude each other by counters instead, as agents publish them where kube-scheduler allocates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from bench import fleet
from bench.fleet import Object
from dra_driver.agent.slices.device_layout import by_name, with_layouts_in_use
from dra_driver.kube.client import Client
from dra_driver.kube.resources import DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.names import DRIVER
from dra_driver.model.pci import PciAddress
from tests.cluster.waiting import wait_until

T = TypeVar("T")

_THREADS = 16
_COUNTER = "card"


@dataclass(frozen=True, slots=True)
class Devices:
    """What one driver publishes."""

    driver: str
    counters: bool = False

    def slices(self, number: int) -> list[Object]:
        """Of the node of that number."""
        made = fleet.resource_slice(number)
        node, devices = made["spec"]["nodeName"], made["spec"]["devices"]
        if self.driver != DRIVER or self.counters:
            devices = [_without(device, "taints") for device in devices]
        if not self.counters:
            content = {"devices": _in_order(devices)}
            return [self._slice(node, "devices", content, of=1)]
        sets = sorted({_card(device) for device in devices})
        amount = {_COUNTER: {"value": "1"}}
        shared = [{"name": name, "counters": amount} for name in sets]
        devices = [
            device | {"consumesCounters": [{"counterSet": _card(device), "counters": amount}]}
            for device in devices
        ]
        return [
            self._slice(node, "counters", {"sharedCounters": shared}, of=2),
            self._slice(node, "devices", {"devices": _in_order(devices)}, of=2),
        ]

    def class_of(self, mode: str) -> str:
        """The name of the class of its devices of that mode."""
        return fleet.CLASS[mode].replace(DRIVER, self.driver)

    def classes(self) -> list[Object]:
        """Its DeviceClasses."""
        return [
            {
                "apiVersion": DEVICE_CLASSES.api_version,
                "kind": DEVICE_CLASSES.kind,
                "metadata": {"name": self.class_of(mode)},
                "spec": {"selectors": [{"cel": {"expression": self._selects(mode)}}]},
            }
            for mode in fleet.MODES
        ]

    def _selects(self, mode: str) -> str:
        driver = self.driver
        return f'device.driver == "{driver}" && device.attributes["{driver}"].type == "{mode}"'

    def _slice(self, node: str, part: str, content: Object, *, of: int) -> Object:
        pool = {"name": f"{self.driver}/{node}", "generation": 1, "resourceSliceCount": of}
        return {
            "apiVersion": RESOURCE_SLICES.api_version,
            "kind": RESOURCE_SLICES.kind,
            "metadata": {"name": f"{node}-{self.driver}-{part}"},
            "spec": {"driver": self.driver, "nodeName": node, "pool": pool, **content},
        }


OURS = Devices(DRIVER)
OURS_COUNTED = Devices(DRIVER, counters=True)
"""As agents publish them where kube-scheduler allocates."""
TWINS = Devices("twin.example.com")


class Publication:
    """What is published on the nodes: of one driver at a time, as kube-scheduler searches all
    slices for each node."""

    def __init__(self, api: Client) -> None:
        self._api = api
        self._nodes = range(0)
        self._devices: Devices | None = None

    def publish(self, devices: Devices | None, nodes: range) -> None:
        """These devices on these nodes, with their classes, and no others."""
        if (devices, nodes) == (self._devices, self._nodes):
            return
        if self._devices is not None:
            for_all(
                lambda made: self._api.delete(RESOURCE_SLICES, made["metadata"]["name"]),
                [made for number in self._nodes for made in self._devices.slices(number)],
            )
            for made in self._devices.classes():
                self._api.delete(DEVICE_CLASSES, made["metadata"]["name"])
        if devices is not None:
            for made in devices.classes():
                self._api.create(DEVICE_CLASSES, made)
            for_all(
                lambda made: self._api.create(RESOURCE_SLICES, made),
                [made for number in nodes for made in devices.slices(number)],
            )
        self._devices, self._nodes = devices, nodes


def add_nodes(api: Client, numbers: range) -> None:
    """Ready ones; returns when kube-controller-manager has taken its taint from them."""
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "Declared"}
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}

    def add(name: str) -> None:
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        api.patch(NODES, name, {"status": status}, subresource="status")

    for_all(add, [fleet.node_name(number) for number in numbers])
    wait_until(
        lambda: not any(node["spec"].get("taints") for node in api.list(NODES).items),
        600.0,
        "nodes without taints",
        interval=0.2,
    )


def claim_of(name: str, namespace: str, requests: Sequence[Object]) -> Object:
    """A ResourceClaim."""
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": list(requests)}},
    }


def for_all(call: Callable[[T], object], items: Sequence[T]) -> None:
    """Many at a time; raises what one of them raised."""
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(call, items))


def _card(device: Object) -> str:
    bus = device["name"].partition("-")[2]
    return f"card-{bus}"


def _in_order(devices: Sequence[Object]) -> Sequence[Object]:
    """As agents publish them: kube-scheduler takes the first device that fits."""
    by_card: dict[PciAddress, list[Object]] = {}
    for card, _, device in by_name(devices):
        by_card.setdefault(card, []).append(device)
    return with_layouts_in_use(by_card, (), frozenset())


def _without(device: Object, field: str) -> Object:
    return {key: value for key, value in device.items() if key != field}
