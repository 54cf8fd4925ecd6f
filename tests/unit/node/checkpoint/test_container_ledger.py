"""Allocations of the device plugin in the ledger, beside claims."""

from __future__ import annotations

import re
from contextlib import nullcontext
from functools import partial

import pytest

from dra_driver.device_plugin.allocator import planned_devices
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.node.checkpoint.records import ClaimStep, Record, record
from tests.unit.node.checkpoint.fold import ledger, refolded
from tests.unit.node.world import CARDS, POOL, hold

HOLDER = ClaimRef("team", "holder", "uid-holder")


def grant(card: int, mode: Mode, *ordinals: int, answer: str = "") -> ContainerAllocation:
    devices = tuple(PluginDevice(CARDS[card], mode, ordinal) for ordinal in ordinals)
    return ContainerAllocation(devices, 6, answer)


holds_of_grant = partial(planned_devices, pool=POOL)


def granted(owner: ContainerAllocation) -> Record:
    return record(ClaimStep.PREPARE_COMPLETED, owner, holds_of_grant(owner))


def test_grants_stand_beside_claims_in_the_journal() -> None:
    container = grant(0, Mode.SHARED, 1, 3, answer="first")
    claim = record(ClaimStep.PREPARE_COMPLETED, HOLDER, (hold(1),))
    state = ledger(claim, granted(container))
    assert refolded(state) == state
    assert state.claims[container.uid].owner == container
    assert not state.prepared_in("")


WHOLE, SHARED, DRS = Mode.WHOLE, Mode.SHARED, Mode.DRS
IN_ITS_PLACE = {
    "slices that nobody has": (grant(0, SHARED, 0, 1), grant(0, SHARED, 2, 3, 4, 5), ""),
    "slices that the kubelet handed on": (grant(0, SHARED, *range(6)), grant(0, SHARED, 0), ""),
    "a whole card that the kubelet handed on": (grant(0, WHOLE, 0), grant(0, WHOLE, 0), ""),
    "sizes that fit": (grant(0, DRS, 0), grant(0, DRS, 1, 2, 3), ""),
    "sizes that do not, though the kubelet handed some on": (
        grant(0, DRS, *range(6)),
        grant(0, DRS, 0),
        "0 are left: the container with enflame.com/drs-gcu 0000:0d:00.0/drs/0,1,2,3,4,5 holds 6",
    ),
    "slices of a whole card": (
        grant(0, WHOLE, 0),
        grant(0, SHARED, 0),
        "the container with enflame.com/gcu 0000:0d:00.0 (UID grant-",
    ),
    "an instance of a shared card": (grant(0, SHARED, 0), grant(0, DRS, 0), "in mode shared"),
}


@pytest.mark.parametrize(("first", "second", "refusal"), IN_ITS_PLACE.values(), ids=IN_ITS_PLACE)
def test_one_set_of_rules_for_grants(
    first: ContainerAllocation, second: ContainerAllocation, refusal: str
) -> None:
    state = ledger(granted(first))
    totals = {holds.device_name: 6 for holds in holds_of_grant(second) if second.mode is not WHOLE}
    with pytest.raises(Refused, match=re.escape(refusal)) if refusal else nullcontext():
        state.admit(second, holds_of_grant(second), totals)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_claim_and_a_container_never_share_more_than_there_is(mode: Mode) -> None:
    capacity = {SHARED: {"slices": "5"}, DRS: {"size": "5"}}.get(mode, {})
    share_id = None if mode is WHOLE else "share"
    claimed = hold(0, mode=mode, share_id=share_id, consumed=capacity)
    container = grant(0, mode, *([0] if mode is WHOLE else [0, 1]))
    totals = {claimed.device_name: 6} if capacity else {}
    with pytest.raises(Refused, match="team/holder"):
        ledger(record(ClaimStep.PREPARE_COMPLETED, HOLDER, (claimed,))).admit(
            container, holds_of_grant(container), totals
        )
    with pytest.raises(Refused, match="the container with"):
        ledger(granted(container)).admit(HOLDER, (claimed,), totals)
