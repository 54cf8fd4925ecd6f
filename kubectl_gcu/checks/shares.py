"""Whether kube-scheduler allocates in a cluster with so many shares that the controller is
quicker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dra_driver.kube.api import ServerVersion
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CAPACITY_SLICES
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import Installation

MANY_SHARES: Final = Check(
    "many-shares",
    "kube-scheduler allocates, and so many shares are published that the controller is quicker "
    "(before Kubernetes 1.38)",
)
MOST_SHARES: Final = 3600
"""Of 1.37.2 (docs/dev/who-allocates.md): kube-scheduler binds 121 named pods a second with 1,080
allocated shares, 105 with 3,240 and 45 with 10,800, as it walks all of them for each device. With
`allocator: controller` it binds 84 to 110, however many there are."""
_BY_DEVICE: Final = ServerVersion(1, 38)
"""From here on it looks a device's shares up (1.38.0-beta.0, `AllocatedSharedDeviceIDs`)."""


def shares(found: Installation) -> Iterator[Finding]:
    """By what is published: all of it may be allocated one day."""
    if not found.for_scheduler or found.server >= _BY_DEVICE:
        return
    count = sum(
        int(device["capacity"][CAPACITY_SLICES]["value"])
        for resource_slice in found.state.slices
        for device in resource_slice["spec"].get("devices") or ()
        if device.get("allowMultipleAllocations")
        and CAPACITY_SLICES in (device.get("capacity") or {})
    )
    if count > MOST_SHARES:
        yield MANY_SHARES.finding(
            "allocator",
            f"it is kube-scheduler, and {count:,} slices of shared cards are published: above "
            f"{MOST_SHARES:,} the controller is quicker",
            f"Let it allocate: {_switch(found.pods('controller'))} "
            "(docs/user/which-allocator.md#what-it-costs-kube-scheduler).",
        )


def _switch(controllers: list[Object]) -> str:
    release, namespace = "gcu-dra-driver", "gcu-dra-driver"
    for pod in controllers:
        labels = pod["metadata"].get("labels") or {}
        release = labels.get("app.kubernetes.io/instance", release)
        namespace = pod["metadata"]["namespace"]
    return (
        f"helm upgrade {release} charts/gcu-dra-driver --namespace {namespace} --reuse-values "
        "--set allocator=controller"
    )
