"""What is published: the devices of complete pools, by node."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controller.allocator.device import Device, DeviceId
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import DRIVER

Slice = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Inventory:
    """Devices of this driver. `problems` maps a pool that cannot be used to the reason."""

    by_node: Mapping[str, tuple[Device, ...]]
    by_id: Mapping[DeviceId, Device]
    by_card: Mapping[tuple[str, str], tuple[Device, ...]]
    problems: Mapping[str, str]

    @classmethod
    def of(cls, slices: Iterable[Slice]) -> Inventory:
        """Only complete pools of the newest generation count; other drivers' slices are left
        out. Devices keep upstream's order: slices by name, then as they are listed."""
        pools: dict[str, list[Slice]] = defaultdict(list)
        for each in slices:
            if each["spec"]["driver"] == DRIVER:
                pools[each["spec"]["pool"]["name"]].append(each)
        devices: list[Device] = []
        problems: dict[str, str] = {}
        for pool, members in sorted(pools.items()):
            try:
                devices += _devices(pool, members)
            except InvalidValue as error:
                problems[pool] = str(error)
        return cls._indexed(devices, problems)

    @classmethod
    def _indexed(cls, devices: list[Device], problems: Mapping[str, str]) -> Inventory:
        by_node: dict[str, list[Device]] = defaultdict(list)
        by_card: dict[tuple[str, str], list[Device]] = defaultdict(list)
        for device in devices:
            by_node[device.node].append(device)
            if device.card is not None:
                by_card[device.id.pool, device.card].append(device)
        return cls(
            by_node={node: tuple(found) for node, found in by_node.items()},
            by_id={device.id: device for device in devices},
            by_card={card: tuple(found) for card, found in by_card.items()},
            problems=problems,
        )

    def siblings(self, device: Device) -> tuple[Device, ...]:
        """The other devices of the same card, which `device` excludes."""
        if device.card is None:
            return ()
        found = self.by_card.get((device.id.pool, device.card), ())
        return tuple(each for each in found if each.id != device.id)


def _devices(pool: str, slices: list[Slice]) -> list[Device]:
    newest = max(each["spec"]["pool"]["generation"] for each in slices)
    current = [each for each in slices if each["spec"]["pool"]["generation"] == newest]
    wanted = current[0]["spec"]["pool"]["resourceSliceCount"]
    if len(current) != wanted:
        raise InvalidValue(
            f"pool {pool} is incomplete: {len(current)} of {wanted} slices of generation {newest}"
        )
    devices: list[Device] = []
    for each in sorted(current, key=lambda each: str(each["metadata"]["name"])):
        devices += _slice_devices(pool, each)
    twice = [name for name, count in Counter(each.id.name for each in devices).items() if count > 1]
    if twice:
        raise InvalidValue(f"pool {pool} is invalid: it lists device {min(twice)} twice")
    return devices


def _slice_devices(pool: str, each: Slice) -> list[Device]:
    spec = each["spec"]
    entries = spec.get("devices") or ()
    node = spec.get("nodeName")
    if not entries:
        return []
    if not node:
        raise InvalidValue(
            f"pool {pool} is not served: slice {each['metadata']['name']} names no single node"
        )
    return [Device.parse(pool, node, entry) for entry in entries]
