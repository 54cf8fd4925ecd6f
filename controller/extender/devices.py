"""A node's cards as devices of a ResourceSlice, with the fields that the allocator reads. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import device_name
from dra_driver.model.devices.node_cards import NodeCard
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ATTR_CARD,
    ATTR_NUMA_NODE,
    ATTR_PCIE_BRIDGES,
    ATTR_PCIE_ROOT,
    ATTR_PROFILES,
    ATTR_TYPE,
    CAPACITY_SIZE,
    CAPACITY_SLICES,
    DRIVER,
    TAINT_UNHEALTHY,
    pool_name,
)
from dra_driver.model.profile import profile_size


def slice_of(node: str, cards: Iterable[NodeCard]) -> Object:
    """The only slice of the node's pool. Raises InvalidValue for a malformed profile name."""
    return {
        "metadata": {"name": node},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": pool_name(node), "generation": 1, "resourceSliceCount": 1},
            "devices": [device for card in cards for device in _devices(card)],
        },
    }


def _devices(card: NodeCard) -> Iterator[Object]:
    if card.whole:
        yield _device(card, Mode.WHOLE)
    if card.slices:
        policy = {"default": "1", "validRange": {"min": "1", "max": str(card.slices)}}
        yield _device(card, Mode.SHARED) | {
            "allowMultipleAllocations": True,
            "capacity": {CAPACITY_SLICES: {"value": str(card.slices), "requestPolicy": policy}},
        }
    if card.profiles:
        sizes = [str(profile_size(name)) for name in card.profiles]
        policy = {"default": sizes[0], "validValues": sizes}
        yield _device(card, Mode.DRS, **{ATTR_PROFILES: ",".join(card.profiles)}) | {
            "allowMultipleAllocations": True,
            "capacity": {CAPACITY_SIZE: {"value": str(card.total), "requestPolicy": policy}},
        }


def _device(card: NodeCard, mode: Mode, **more: str) -> Object:
    texts = {ATTR_TYPE: mode.value, ATTR_CARD: str(card.address), **more}
    if card.bridges:
        texts[ATTR_PCIE_BRIDGES] = card.bridges
    if card.root:
        texts[ATTR_PCIE_ROOT] = card.root
    attributes: dict[str, Any] = {name: {"string": text} for name, text in texts.items()}
    if card.numa is not None:
        attributes[ATTR_NUMA_NODE] = {"int": card.numa}
    taint = {"key": TAINT_UNHEALTHY, "value": card.problem, "effect": "NoSchedule"}
    return {
        "name": device_name(mode, card.address),
        "attributes": attributes,
        "taints": [taint] if card.problem else [],
    }
