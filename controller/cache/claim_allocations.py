"""What claims hold: as the watch has them, or as a write in flight will leave them."""

from __future__ import annotations

from collections.abc import Sequence

from controller.allocator.allocated_devices import (
    AllocatedDevices,
    DeviceAllocation,
    allocations_of,
)
from controller.allocator.node_selector import selected_name
from dra_driver.model.claim import Object, allocation


class ClaimAllocations:
    """Keeps `holdings`, claim by claim. Claims go by UID: a claim that was deleted while it was
    being written, and the new claim of its name, each hold what they hold."""

    def __init__(self, holdings: AllocatedDevices) -> None:
        self._holdings = holdings
        self._assumed: dict[str, Object] = {}
        self._holds: dict[str, Sequence[DeviceAllocation]] = {}
        self._nodes: dict[str, str] = {}

    def assume(self, claim: Object) -> None:
        """Until `forget`, the claim counts as it is here, once `count` is called for it."""
        self._assumed[uid_of(claim)] = claim

    def forget(self, uid: str) -> bool:
        """End `assume`; the watched claim counts again, after `count`. Gives whether the claim was
        assumed."""
        return self._assumed.pop(uid, None) is not None

    def count(self, uid: str, watched: Object | None) -> bool:
        """`watched` is the claim of that UID as the watch has it, None if it has none. Gives
        whether the claim is on another node now."""
        claim = self._assumed.get(uid, watched)
        holds = () if claim is None else allocations_of(claim)
        node = None if claim is None else _node_of(claim)
        for hold in self._holds.pop(uid, ()):
            self._holdings.remove(hold)
        for hold in holds:
            self._holdings.add(hold)
        if holds:
            self._holds[uid] = holds
        moved = self._nodes.get(uid) != node
        self._nodes.pop(uid, None)
        if node is not None:
            self._nodes[uid] = node
        return moved

    def of(self, claim: Object) -> Sequence[DeviceAllocation]:
        return self._holds.get(uid_of(claim), ())

    def node(self, claim: Object) -> str | None:
        """The node on which the claim is allocated, where that is one."""
        return self._nodes.get(uid_of(claim))


def uid_of(claim: Object) -> str:
    return str(claim["metadata"]["uid"])


def _node_of(claim: Object) -> str | None:
    return selected_name((allocation(claim) or {}).get("nodeSelector"))
