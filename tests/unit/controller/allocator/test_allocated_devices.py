"""What allocated claims hold, whoever allocated them: read from their status alone."""

from __future__ import annotations

import pytest

from controller.allocator.allocated_devices import (
    AllocatedDevices,
    DeviceAllocation,
    allocations_of,
)
from controller.allocator.device import DeviceId
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import allocated, claim
from tests.unit.controller.allocator.decide import names

[NAME] = names("shared", 0)
DEVICE = DeviceId("gcu.enflame.com/a", NAME)
NANO = 10**9
SHARE = DeviceAllocation(DEVICE, {"slices": 2 * NANO})

CASES: dict[str, tuple[Object, tuple[DeviceAllocation, ...]]] = {
    "an unallocated claim": (claim("c"), ()),
    "a whole device": (allocated("c", "a", NAME), (DeviceAllocation(DEVICE, None),)),
    "a share": (allocated("c", "a", NAME, consumed={"slices": "2"}), (SHARE,)),
    "a share of which nothing is told": (
        allocated("c", "a", NAME, shareID="s"),
        (DeviceAllocation(DEVICE, {}),),
    ),
    "two shares of one device": (
        allocated("c", "a", NAME, NAME, consumed={"slices": "2"}),
        (SHARE, SHARE),
    ),
    "administrative access": (allocated("c", "a", NAME, adminAccess=True), ()),
    "another driver's": (allocated("c", "a", NAME, driver="nic.example.com"), ()),
}


@pytest.mark.parametrize(("given", "holds"), CASES.values(), ids=CASES)
def test_holds_of(given: Object, holds: tuple[DeviceAllocation, ...]) -> None:
    assert allocations_of(given) == holds


def test_shares_add_up_and_are_taken_back() -> None:
    allocated, other = AllocatedDevices(), DeviceAllocation(DEVICE, {"slices": NANO})
    for hold in (SHARE, SHARE, other):
        allocated.add(hold)
    use = allocated.use(DEVICE)
    assert use is not None
    assert use.consumed == {"slices": 5 * NANO}
    assert use.shares == {frozenset({("slices", 2 * NANO)}): 2, frozenset({("slices", NANO)}): 1}
    for hold in (SHARE, other, SHARE):
        assert allocated.use(DEVICE)
        allocated.remove(hold)
    assert allocated.use(DEVICE) is None


def test_a_held_device_is_found_by_its_card_s_name_as_its_slice_may_be_gone() -> None:
    allocated = AllocatedDevices()
    allocated.add(SHARE)
    assert list(allocated.names_of_card(DEVICE.pool, "0000:00:00.0")) == [NAME]
    assert list(allocated.names_of_card(DEVICE.pool, "0000:01:00.0")) == []
    allocated.remove(SHARE)
    assert list(allocated.names_of_card(DEVICE.pool, "0000:00:00.0")) == []
