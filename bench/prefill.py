"""Cards that are in use before anything is measured.

Claims are written as allocated, with no allocator at work: half of the cards that are in use are
whole ones, the others have slices, two in each claim. kube-scheduler walks all shares of the
cluster for each device with counters that it looks at, and so an empty cluster says little.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bench import fleet
from bench.fleet import CARDS, SLICES, Object
from bench.published import OURS, Devices, claim_of, for_all
from controller.cache.claims import MANAGER
from dra_driver.kube.client import connect
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.control_plane.objects import pod_with

_NAMESPACE: Final = "prefill"
_SHARE: Final = 2  # slices of a claim


@dataclass(frozen=True, slots=True)
class Use:
    """One claim's part of a card: all of it, if it has no `slices`."""

    node: int
    card: int
    slices: int = 0
    number: int = 0  # among those of its card

    @property
    def mode(self) -> str:
        return "shared" if self.slices else "whole"

    @property
    def name(self) -> str:
        return f"{fleet.node_name(self.node)}-{self.card}-{self.number}"


def uses(node: int, full: float) -> list[Use]:
    """What is in use on the node of that number, if `full` (0 to 1) of the cards of all nodes are.
    Slices begin at the first card and whole cards at the last one, as kube-scheduler takes them."""
    used = _used_before(node + 1, full) - _used_before(node, full)
    whole = (used + node % 2) // 2
    shares = range(SLICES // _SHARE)
    return [
        *(Use(node, card, _SHARE, number) for card in range(used - whole) for number in shares),
        *(Use(node, card) for card in range(CARDS - whole, CARDS)),
    ]


def free_cards(nodes: int, full: float) -> int:
    """How many cards of so many nodes are not in use."""
    return nodes * CARDS - _used_before(nodes, full)


def _used_before(node: int, full: float) -> int:
    return math.floor(node * CARDS * full + 1e-6)


class Prefill:
    """Cards of one driver in use. A pod on each node has all claims there."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # The controller takes an allocation by this manager for its own, and reports no other's.
        self._api = connect(
            cluster.kubeconfig, effects=Effects(), user_agent=f"{MANAGER}/bench", at_once=16
        )
        self._pods: dict[int, str] = {}  # by node the uid of its pod
        self._whole: Iterator[Use] = iter(())
        self._freed: list[Use] = []
        self._devices = OURS
        cluster.kubectl("create", "namespace", _NAMESPACE)

    def fill(self, devices: Devices, nodes: int, full: float) -> None:
        """In place of what was filled before."""
        self._empty()
        self._devices = devices
        by_node = {node: here for node in range(nodes) if (here := uses(node, full))}
        for_all(lambda node: self._start_pod(node, by_node[node]), [*by_node])
        everywhere = [use for here in by_node.values() for use in here]
        for_all(self._allocate, everywhere)
        self._whole = (use for use in everywhere if not use.slices)

    def free_card(self) -> None:
        """A whole card is free from now on."""
        use = next(self._whole)
        self._api.delete(RESOURCE_CLAIMS, use.name, namespace=_NAMESPACE)
        self._freed.append(use)

    def restore(self) -> None:
        """What was freed is in use again; whoever used it meanwhile is gone."""
        for_all(self._allocate, self._freed)
        self._whole = iter([*self._freed, *self._whole])
        self._freed.clear()

    def _empty(self) -> None:
        names = [
            claim["metadata"]["name"]
            for claim in self._api.list(RESOURCE_CLAIMS, namespace=_NAMESPACE).items
        ]
        for_all(lambda name: self._api.delete(RESOURCE_CLAIMS, name, namespace=_NAMESPACE), names)
        path = f"/api/v1/namespaces/{_NAMESPACE}/pods?gracePeriodSeconds=0"
        self._cluster.kubectl("delete", f"--raw={path}")
        self._pods.clear()
        self._freed.clear()

    def _start_pod(self, node: int, here: list[Use]) -> None:
        name = fleet.node_name(node)
        made = pod_with(name, _NAMESPACE, *(use.name for use in here), nodeName=name)
        self._pods[node] = self._api.create(PODS, made)["metadata"]["uid"]

    def _allocate(self, use: Use) -> None:
        claim = claim_of(use.name, _NAMESPACE, [self._request(use)])
        stored = self._api.create(RESOURCE_CLAIMS, claim)
        stored["status"] = self._status(use)
        self._api.replace(RESOURCE_CLAIMS, stored, subresource="status")

    def _request(self, use: Use) -> Object:
        request = fleet.request(use.mode, use.slices)
        request["exactly"]["deviceClassName"] = self._devices.class_of(use.mode)
        return request

    def _status(self, use: Use) -> Object:
        node, driver = fleet.node_name(use.node), self._devices.driver
        result: Object = {
            "request": "gcu",
            "driver": driver,
            "pool": f"{driver}/{node}",
            "device": fleet.device_name(use.mode, use.card),
        }
        if use.slices:
            amount = {"slices": str(use.slices)}
            result |= {"shareID": str(uuid.uuid4()), "consumedCapacity": amount}
        term = {"key": "metadata.name", "operator": "In", "values": [node]}
        return {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [term]}]},
            },
            "reservedFor": [{"resource": "pods", "name": node, "uid": self._pods[use.node]}],
        }
