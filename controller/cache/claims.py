"""Small views on a ResourceClaim (resource.k8s.io/v1) as plain dict: which allocations are ours,
and which of those are to be taken back.

The API server records who wrote an allocation, in ``managedFields``. An annotation of ours could
outlive the allocation that it speaks of: kube-scheduler clears one and another allocator may write
the next. The server's own record cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from controller.allocator.device import DeviceId
from controller.allocator.inventory import Inventory
from controller.cache import pods
from controller.cache.keys import uid_of
from controller.cache.nodes import selected_name
from dra_driver.model.claims.claim import (
    Object,
    allocation,
    allocation_owners,
    reserved_for,
    results,
)

# The server takes the manager from the user agent, up to its first slash.
MANAGER: Final = "gcu-dra-controller"


_TO_BE_MADE: Final = "<limits of {}>"


def name_to_be_made(pod_name: str) -> str:
    """What a claim is called that kube-scheduler is going to make for the pod's limits. No API
    server stores such a name."""
    return _TO_BE_MADE.format(pod_name)


def is_to_be_made(claim: Mapping[str, Any]) -> bool:
    """Whether the claim has such a name."""
    return str(claim["metadata"]["name"]).startswith("<")


def allocated_by_us(claim: Mapping[str, Any]) -> bool:
    """Whether the present allocation was written by a controller of ours, of any replica."""
    return allocation(claim) is not None and MANAGER in writers_of_allocation(claim)


def writers_of_allocation(claim: Mapping[str, Any]) -> list[str]:
    """Who wrote the present allocation, as far as is known."""
    return [str(entry.get("manager")) for entry in allocation_owners(claim)]


def foreign_devices(claim: Object, inventory: Inventory) -> list[str]:
    """Those of our devices, as ``pool/device`` and sorted, that another allocator gave to the claim
    and that are the controller's to give. Administrative access uses none up."""
    if allocated_by_us(claim):
        return []
    foreign = set[str]()
    for result in results(claim):
        device = inventory.device(DeviceId(result.pool, result.device))
        if not result.admin_access and (device is None or not device.kind.is_of_scheduler):
            foreign.add(f"{result.pool}/{result.device}")
    return sorted(foreign)


def is_releasable(claim: Object) -> bool:
    """Written by us, reserved by nobody. A claim that is being deleted is upstream's to end."""
    return (
        allocated_by_us(claim)
        and not reserved_for(claim)
        and not claim["metadata"].get("deletionTimestamp")
    )


def is_unreservable(claim: Object) -> bool:
    """Releasable, and allocated before Kubernetes 1.36, whose kube-scheduler can reserve it for no
    pod: see `pods.failed_reservation`."""
    return is_releasable(claim) and "allocationTimestamp" not in (allocation(claim) or {})


def is_orphan(claim: Object, users: Sequence[Object]) -> bool:
    """Whether nobody will ever use our allocation: its pod vanished before it was scheduled. The
    garbage collector deletes claims that were made for one pod."""
    return is_releasable(claim) and not users and pods.owning_pod(claim) is None


def is_stranded(claim: Object, users: Sequence[Object]) -> bool:
    """Whether our allocation is of one node, and all pods that reserved it are bound to others:
    kube-scheduler, late by more than the quiet time, wrote its reservation into an allocation that
    it did not decide on. No pod uses it on its node, and a pod never leaves the one it is bound
    to."""
    node = allocated_node(claim)
    if node is None or claim["metadata"].get("deletionTimestamp") or not allocated_by_us(claim):
        return False
    bound = {uid_of(user): pods.node_name(user) for user in users}
    where = {bound.get(consumer.get("uid", ""), "") for consumer in reserved_for(claim)}
    return bool(where) and "" not in where and node not in where


def given_up(old: Object | None, new: Object | None, pod: Object, group_uid: str) -> bool:
    """Whether our allocation was taken back for the sake of this waiting pod, which fits nowhere
    with it: by us or by kube-scheduler, which clears only what nobody but the pod, or its group,
    has reserved."""
    if old is None or new is None or uid_of(old) != uid_of(new):
        return False
    if not allocated_by_us(old) or allocation(new):
        return False
    users = {consumer.get("uid") for consumer in reserved_for(old)}
    return users <= {uid_of(pod), group_uid} and not pods.node_name(pod)


def allocated_node(claim: Object) -> str | None:
    """The one node that the claim's allocation is for."""
    return selected_name((allocation(claim) or {}).get("nodeSelector"))
