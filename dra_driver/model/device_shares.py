"""The two devices of a card that many claims can have a share of: its slices, its DRS sizes.

What the API allows is in k8s.io/api/resource/v1 (CapacityRequestPolicy) and its validation
(1.36.3, ``pkg/apis/resource/validation``): a policy needs a default, valid values are ascending and
at most ten, and a range whose minimum and maximum are the same must not have a step.
"""

from __future__ import annotations

from typing import Any, Final

from dra_driver.model import names
from dra_driver.model.card import Card
from dra_driver.model.device import card_attributes, device_name, taints
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.profile import ProfileTable

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
    wanted = {"min": "1", "max": str(slice_count)}
    if slice_count > 1:
        wanted["step"] = "1"
    device = _device(card, Mode.SHARED, allocator, sips)
    device["attributes"][names.ATTR_MEMORY_PER_SLICE_MIB] = {"int": card.memory_mib // slice_count}
    device["capacity"] = {
        names.CAPACITY_SLICES: {
            "value": str(slice_count),
            "requestPolicy": {"default": "1", "validRange": wanted},
        }
    }
    return device


def drs_device(card: Card, table: ProfileTable, *, allocator: str) -> dict[str, Any]:
    """The card's DRS instances, of all profiles in `table`, as one device that many claims share.

    A request between two sizes is rounded up to the next one by whoever allocates.
    """
    sizes = [str(size) for size in table.sizes[:_MAX_VALID_VALUES]]
    device = _device(card, Mode.DRS, allocator, table.sips)
    device["attributes"][names.ATTR_PROFILES] = {"string": table.text}
    device["capacity"] = {
        names.CAPACITY_SIZE: {
            "value": str(table.total),
            "requestPolicy": {"default": sizes[0], "validValues": sizes},
        }
    }
    return device


def _device(card: Card, mode: Mode, allocator: str, sips: int | None) -> dict[str, Any]:
    return {
        "name": device_name(mode, card.address),
        "attributes": card_attributes(card, mode, sips=sips),
        "allowMultipleAllocations": True,
        "taints": taints(card, allocator=allocator),
    }
