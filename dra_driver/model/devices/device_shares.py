"""The two devices of a card that many claims can have a share of: its slices, its DRS sizes.

What the API allows is in k8s.io/api/resource/v1 (CapacityRequestPolicy) and its validation
(1.36.3, ``pkg/apis/resource/validation``): a policy needs a default, valid values are ascending and
at most ten, and a range whose minimum and maximum are the same must not have a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_driver.model import names
from dra_driver.model.card import Card
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE
from dra_driver.model.claims.measures import memory_per_slice
from dra_driver.model.devices.device import card_device
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.profile import ProfileTable, profile_size
from dra_driver.model.quantity import parse_quantity

MAX_SLICES: Final = 16
_MAX_VALID_VALUES: Final = 10


def shared_device(
    card: Card, slice_count: int, *, allocator: str, sips: int | None = None
) -> dict[str, Any]:
    """The card's `slice_count` shared slices as one device that many claims share.

    Raises InvalidValue for a count outside 1..16. `allocator` and `sips` as in `whole_device`.
    """
    if not 1 <= slice_count <= MAX_SLICES:
        raise InvalidValue(
            f"card {card.address} cannot have {slice_count} slices",
            remedy=f"set a sliceCount from 1 to {MAX_SLICES}",
        )
    device = card_device(card, Mode.SHARED, allocator=allocator, sips=sips)
    device["attributes"][names.ATTR_MEMORY_PER_SLICE_MIB] = {
        "int": memory_per_slice(card.memory_mib, slice_count)
    }
    return device | _shares(Mode.SHARED, slice_count, _slices_policy(slice_count))


def drs_device(card: Card, table: ProfileTable, *, allocator: str) -> dict[str, Any]:
    """The card's DRS instances, of all profiles in `table`, as one device that many claims share.

    A request between two sizes is rounded up to the next one by whoever allocates.
    """
    device = card_device(card, Mode.DRS, allocator=allocator, sips=table.sips)
    device["attributes"][names.ATTR_PROFILES] = {"string": table.text}
    return device | _shares(Mode.DRS, table.total, _sizes_policy([each.size for each in table]))


def is_stripped(device: Mapping[str, Any]) -> bool:
    """Whether the API server dropped that many claims can share the published device (before
    Kubernetes 1.36). It then drops ``shareID`` and ``consumedCapacity`` of allocations, too."""
    return not device.get("allowMultipleAllocations") and _mode(device) in CAPACITY_OF_MODE


def with_shares(device: Mapping[str, Any]) -> Mapping[str, Any]:
    """A published device with what the API server dropped of it, from its type, its profiles and
    its capacity; the same object where nothing was dropped.

    Raises InvalidValue for profiles or a capacity that this driver does not publish.
    """
    if not is_stripped(device):
        return device
    mode = _mode(device)
    name = CAPACITY_OF_MODE[mode]
    capacity = (device.get("capacity") or {}).get(name) or {}
    if mode == Mode.SHARED:
        policy = _slices_policy(int(parse_quantity(str(capacity.get("value", "")))))
    else:
        profiles = device["attributes"].get(names.ATTR_PROFILES, {}).get("string", "")
        policy = _sizes_policy(tuple(map(profile_size, profiles.split(","))))
    whole = {**device.get("capacity", {}), name: {**capacity, "requestPolicy": policy}}
    return {**device, "allowMultipleAllocations": True, "capacity": whole}


def _mode(device: Mapping[str, Any]) -> str:
    return str(((device.get("attributes") or {}).get(names.ATTR_TYPE) or {}).get("string", ""))


def _slices_policy(slice_count: int) -> dict[str, Any]:
    wanted = {"min": "1", "max": str(slice_count)}
    if slice_count > 1:
        wanted["step"] = "1"
    return {"default": "1", "validRange": wanted}


def _sizes_policy(sizes: Sequence[int]) -> dict[str, Any]:
    values = [str(size) for size in sizes[:_MAX_VALID_VALUES]]
    return {"default": values[0], "validValues": values}


def _shares(mode: Mode, total: int, policy: Mapping[str, Any]) -> dict[str, Any]:
    capacity = {"value": str(total), "requestPolicy": policy}
    return {"allowMultipleAllocations": True, "capacity": {CAPACITY_OF_MODE[mode]: capacity}}
