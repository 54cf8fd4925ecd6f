"""Which allocations are ours to take back. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from controller.allocator.node_selector import selected_name
from controller.cache import pods
from controller.reconcile.field_manager import allocated_by_us
from dra_driver.model.claim import Object, allocation, reserved_for


def is_releasable(claim: Object) -> bool:
    """Written by us, reserved by nobody. A claim that is being deleted is upstream's to end."""
    return (
        allocated_by_us(claim)
        and not reserved_for(claim)
        and not claim["metadata"].get("deletionTimestamp")
    )


def is_orphan(claim: Object, users: Sequence[Object]) -> bool:
    """Whether nobody will ever use our allocation: its pod vanished before it was scheduled. The
    garbage collector deletes claims that were made for one pod."""
    return is_releasable(claim) and not users and pods.owning_pod(claim) is None


def is_stranded(claim: Object, users: Sequence[Object]) -> bool:
    """Whether our allocation is of one node, and all pods that reserved it are bound to others:
    kube-scheduler, late by more than the quiet time, wrote its reservation into an allocation that
    it did not decide on. No pod uses it on its node, and a pod never leaves the one it is bound
    to."""
    node = selected_name((allocation(claim) or {}).get("nodeSelector"))
    if node is None or claim["metadata"].get("deletionTimestamp") or not allocated_by_us(claim):
        return False
    bound = {pods.uid_of(user): pods.node_name(user) for user in users}
    where = {bound.get(each.get("uid", ""), "") for each in reserved_for(claim)}
    return bool(where) and "" not in where and node not in where


def cleared_by_scheduler(old: Object | None, new: Object | None, pod: Object) -> bool:
    """Whether kube-scheduler gave up our allocation for the sake of this waiting pod: it clears
    only what nobody else has reserved."""
    if old is None or new is None or old["metadata"]["uid"] != new["metadata"]["uid"]:
        return False
    if not allocated_by_us(old) or (new.get("status") or {}).get("allocation"):
        return False
    others = {each.get("uid") for each in reserved_for(old)} - {pods.uid_of(pod)}
    return not others and not pods.node_name(pod)
