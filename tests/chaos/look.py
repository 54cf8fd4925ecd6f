"""What there is at one moment, as far as the auditor needs it: values, without effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dra_driver.model.claims.amounts import CAPACITY_OF_MODE
from dra_driver.model.claims.claim import results
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress

Object = dict[str, Any]

Place = tuple[str, PciAddress]
"""A card: its node's pool, and its address."""


@dataclass(frozen=True, slots=True)
class Container:
    """A running container: the minors of its device nodes, and those of its variable; `instance` is
    the UUID of the DRS instance that it names, or empty."""

    id: str
    pod: str  # UID
    name: str
    minors: frozenset[int]
    visible: frozenset[int]
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A card as its machine has it; `instances` are sizes by UUID."""

    minor: int
    divided: bool
    instances: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Holding:
    """What a claim has of a card. `amount` is its slices or size, and 0 for a whole card."""

    claim: str  # UID
    place: Place
    mode: Mode
    amount: int


@dataclass(frozen=True, slots=True)
class Look:
    """`at` is in seconds. `pods` and `claims` are objects by UID, `containers` by their IDs.
    `owned` are by pool the UUIDs of the instances that the agent's journal has; None while the
    agent writes to it."""

    at: float
    pods: Mapping[str, Object]
    claims: Mapping[str, Object]
    containers: Mapping[str, Container]
    cards: Mapping[Place, Card]
    owned: Mapping[str, frozenset[str] | None]

    def claim(self, namespace: str, name: str) -> Object | None:
        """The claim of that name."""
        for found in self.claims.values():
            metadata = found["metadata"]
            if (metadata["namespace"], metadata["name"]) == (namespace, name):
                return found
        return None


def holdings(claim: Object) -> list[Holding]:
    """What the claim was allocated; administrators hold nothing."""
    found = []
    for result in results(claim):
        if result.admin_access:
            continue
        mode, address = parse_device_name(result.device)
        capacity = CAPACITY_OF_MODE.get(mode)
        amount = int(result.consumed[capacity]) if capacity else 0
        place = (result.pool, address)
        found.append(Holding(str(claim["metadata"]["uid"]), place, mode, amount))
    return found
