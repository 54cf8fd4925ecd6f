"""What people are told of a pod or a claim although nothing is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from controller.allocator.ownership import serves_class
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key, Subject
from controller.filter.usage import differs
from controller.reconcile.release import allocated_by_us, writers_of_allocation
from dra_driver.model.claim import ClaimRef, Object, reserved_for, results
from dra_driver.model.names import CLASS_LIMIT_PREFIX, DRIVER

CLAIM_FULL: Final = "GcuClaimFull"
USAGE_DIFFERS: Final = "GcuUsageDiffers"
LIMIT_NOT_SERVED: Final = "GcuLimitNotServed"
MOST_USERS: Final = 256  # resource.k8s.io/v1, ResourceClaimReservedForMaxSize


def about_pod(
    pod: Object, ours: Mapping[str, Object], cache: ClusterCache
) -> Iterator[tuple[str, str]]:
    """Reasons and notes of events about a pod that waits for kube-scheduler, and whose claims
    `ours`, by their names in the pod, are all allocated."""
    if note := _claim_full(pod, ours.values()):
        yield CLAIM_FULL, note
    if note := _usage_differs(pod, ours, cache):
        yield USAGE_DIFFERS, note
    if note := _limit_not_served(pod, cache.state()):
        yield LIMIT_NOT_SERVED, note


def allocated_by_other(claim: Object) -> str | None:
    """The note of an event about devices of ours that another allocator gave to the claim.

    kube-scheduler is kept away by a taint, which somebody's own class or claim may tolerate. Such
    an allocation counts as used like any other; people are told, because two allocators that do
    not know of each other can give one card twice.
    """
    devices = sorted(
        {f"{each.pool}/{each.device}" for each in results(claim) if not each.admin_access}
    )
    if not devices or allocated_by_us(claim):
        return None
    writer = ", ".join(writers_of_allocation(claim)) or "an unknown writer"
    return (
        f"{', '.join(devices)} was allocated by {writer}, past the controller "
        "of this driver, which counts it as used; it may be allocated twice. Remove whatever "
        "tolerates the taint gcu.enflame.com/allocated-by, and delete the claim"
    )


def _claim_full(pod: Object, claims: Iterable[Object]) -> str | None:
    """One of the claims has no room for the pod. kube-scheduler tries such a pod again and again,
    and binds it when there is room."""
    for claim in claims:
        users = reserved_for(claim)
        if len(users) >= MOST_USERS and all(each.get("uid") != pods.uid_of(pod) for each in users):
            return (
                f"claim {ClaimRef.of(claim)} is in use by {len(users)} pods, and the API allows no "
                "more: this one waits until one of them ends"
            )
    return None


def _usage_differs(pod: Object, ours: Mapping[str, Object], cache: ClusterCache) -> str | None:
    for claim in ours.values():
        user = _first_user(claim, cache)
        if user is not None:
            claims = cache.claims_of(user) or {}
            theirs = {name: each for name, each in claims.items() if results(each)}
            if note := differs(pod, ours, user, theirs):
                return note
    return None


def _first_user(claim: Object, cache: ClusterCache) -> Object | None:
    """The pod for which the claim is prepared: of those that are bound, the first that it was
    reserved for. To look at all of them, for each pod that waits, is too much for hundreds."""
    for entry in reserved_for(claim):
        user = cache.get(Key(Subject.POD, claim["metadata"]["namespace"], entry["name"]))
        if user is not None and pods.uid_of(user) == entry["uid"] and pods.node_name(user):
            return user
    return None


def _limit_not_served(pod: Object, state: State) -> str | None:
    """Kubernetes 1.36 and newer take the limit ``deviceclass.resource.kubernetes.io/CLASS: n`` for
    n devices of the class. kube-scheduler keeps the claim for it in memory until the pod is bound,
    so that nobody else can allocate it."""
    for device_class in pods.limited_classes(pod):
        if serves_class(device_class, state):
            return (
                f"the limit {CLASS_LIMIT_PREFIX}{device_class} is not served: the devices of "
                f"{DRIVER} are allocated to ResourceClaims alone. Use a ResourceClaim of the "
                f"DeviceClass {device_class}, or turn on legacyResources of the chart in this "
                "namespace, and create the pod again"
            )
    return None
