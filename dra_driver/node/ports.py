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


class IsCancelled(Protocol):
    """Whether the kubelet has given the call up by now.

    It gives a prepare up after 45 s, or when the pod is deleted, and then has the claim unprepared.
    During an update it asks another agent for that, which does not know that the call still runs,
    and nobody would undo what the call creates afterwards.
    """

    def __call__(self) -> bool: ...


class Hardware(Protocol):
    """Reads the machine."""

    def card(self, address: PciAddress) -> Card:
        """The card with its present minor and device nodes; raises HardwareError if it is lost or
        cannot be read."""
