"""Nodes without kubelets in a real API server, and the devices that drivers publish for them.

Three drivers publish the same devices, 8 cards a node and 3 devices a card: ours, with the taint
that keeps kube-scheduler away; a twin of it without the taint; and one whose devices exclude each
other by counters, as a driver must publish them where kube-scheduler allocates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from bench import fleet
from bench.fleet import Object
from dra_driver.kube.client import Client
from dra_driver.kube.resources import DEVICE_CLASSES, NODES, RESOURCE_SLICES
from dra_driver.model.names import DRIVER
from tests.cluster.waiting import wait_until

T = TypeVar("T")

_THREADS = 16
_COUNTER = "card"


@dataclass(frozen=True, slots=True)
class Devices:
    """What one driver publishes; `device_class` selects its whole cards."""

    driver: str
    device_class: str
    counters: bool = False

    def slices(self, number: int) -> list[Object]:
        """Of the node of that number."""
        made = fleet.resource_slice(number)
        node, devices = made["spec"]["nodeName"], made["spec"]["devices"]
        if self.driver != DRIVER or self.counters:
            devices = [_without(each, "taints") for each in devices]
        if not self.counters:
            return [self._slice(node, "devices", {"devices": devices}, of=1)]
        sets = sorted({_card(each) for each in devices})
        amount = {_COUNTER: {"value": "1"}}
        shared = [{"name": each, "counters": amount} for each in sets]
        devices = [
            each | {"consumesCounters": [{"counterSet": _card(each), "counters": amount}]}
            for each in devices
        ]
        return [
            self._slice(node, "counters", {"sharedCounters": shared}, of=2),
            self._slice(node, "devices", {"devices": devices}, of=2),
        ]

    def selecting_class(self) -> Object:
        expression = (
            f'device.driver == "{self.driver}" '
            f'&& device.attributes["{self.driver}"].type == "whole"'
        )
        return {
            "apiVersion": DEVICE_CLASSES.api_version,
            "kind": DEVICE_CLASSES.kind,
            "metadata": {"name": self.device_class},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }

    def _slice(self, node: str, part: str, content: Object, *, of: int) -> Object:
        pool = {"name": f"{self.driver}/{node}", "generation": 1, "resourceSliceCount": of}
        return {
            "apiVersion": RESOURCE_SLICES.api_version,
            "kind": RESOURCE_SLICES.kind,
            "metadata": {"name": f"{node}-{self.driver}-{part}"},
            "spec": {"driver": self.driver, "nodeName": node, "pool": pool, **content},
        }


OURS = Devices(DRIVER, fleet.CLASS["whole"])
OURS_COUNTED = Devices(DRIVER, fleet.CLASS["whole"], counters=True)
"""As agents publish them where kube-scheduler allocates."""
TWINS = Devices("twin.example.com", "twin.example.com")
COUNTED = Devices("counted.example.com", "counted.example.com", counters=True)


@contextmanager
def published(api: Client, devices: Devices, nodes: range) -> Iterator[None]:
    """Their slices and their class are there. No others, if the caller keeps to one at a time:
    kube-scheduler searches all slices for each node."""
    api.create(DEVICE_CLASSES, devices.selecting_class())
    made = [each for number in nodes for each in devices.slices(number)]
    for_all(lambda each: api.create(RESOURCE_SLICES, each), made)
    yield
    for_all(lambda each: api.delete(RESOURCE_SLICES, each["metadata"]["name"]), made)
    api.delete(DEVICE_CLASSES, devices.device_class)


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


def for_all(call: Callable[[T], object], items: Sequence[T]) -> None:
    """Many at a time; raises what one of them raised."""
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(call, items))


def _card(device: Object) -> str:
    bus = device["name"].partition("-")[2]
    return f"card-{bus}"


def _without(device: Object, field: str) -> Object:
    return {key: value for key, value in device.items() if key != field}
