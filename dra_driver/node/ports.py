"""What the node side needs from outside."""

from __future__ import annotations

from typing import Any, Protocol

from dra_driver.model.card import Card
from dra_driver.model.pci import PciAddress


class ClaimReader(Protocol):
    """Reads from the API server; objects are plain dicts.

    Both methods raise `dra_driver.kube.errors.NotFound` or another KubeError.
    """

    def get_claim(self, namespace: str, name: str) -> dict[str, Any]:
        """The ResourceClaim (resource.k8s.io/v1) as it is now."""

    def get_pod(self, namespace: str, name: str) -> dict[str, Any]:
        """The Pod as it is now."""


class Hardware(Protocol):
    """Reads the machine."""

    def card(self, address: PciAddress) -> Card:
        """The card as it is now, minor and device nodes read anew; raises HardwareError when it
        is lost or cannot be read."""
