"""What the node side needs from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dra_driver.kube.resources import Resource
from dra_driver.model.card import Card
from dra_driver.model.claims.claim import Object
from dra_driver.model.pci import PciAddress


class ObjectReader(Protocol):
    """Reads claims and pods from the API server, each when it is needed: the agent may not list
    them. `dra_driver.kube.api.ObjectApi` is one."""

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        """The object as it is now. Raises `dra_driver.kube.errors.NotFound` or another
        KubeError."""


IsCancelled = Callable[[], bool]
"""Whether the kubelet has given the call up by now.

It gives a prepare up after 45 s, or when the pod is deleted, and then has the claim unprepared.
During an update it asks another agent for that, which does not know that the call still runs, and
nobody would undo what the call creates afterwards.
"""


class Hardware(Protocol):
    """Reads the machine."""

    def card(self, address: PciAddress) -> Card:
        """The card with its present minor and device nodes; raises HardwareError if it is lost or
        cannot be read."""

    def is_on_bus(self, address: PciAddress) -> bool:
        """Whether the machine has the card, whether or not it can be read."""
