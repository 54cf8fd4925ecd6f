"""Limits named after a DeviceClass, which no allocator but kube-scheduler's own serves. Pure.

Kubernetes 1.36 and newer take the limit ``deviceclass.resource.kubernetes.io/CLASS: n`` for n
devices of the class. kube-scheduler keeps the claim for it in memory until the pod is bound, so
that nobody else can allocate it.
"""

from __future__ import annotations

from controller.allocator.ownership import serves_class
from controller.allocator.state import State
from controller.cache import pods
from dra_driver.model.claim import Object
from dra_driver.model.names import CLASS_LIMIT_PREFIX, DRIVER


def unserved(pod: Object, state: State) -> str | None:
    """What to report about a waiting pod that has a limit named after a class of this driver; None
    for any other pod."""
    for device_class in pods.limited_classes(pod):
        if serves_class(device_class, state):
            return (
                f"the limit {CLASS_LIMIT_PREFIX}{device_class} is not served: the devices of "
                f"{DRIVER} are allocated to ResourceClaims alone. Use a ResourceClaim of the "
                f"DeviceClass {device_class}, or turn on legacyResources of the chart in this "
                "namespace, and create the pod again"
            )
    return None
