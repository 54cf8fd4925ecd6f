"""What is allocated on the node of a kill test, written as our controller would."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from dra_driver.kube.client import Client
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.devices.device import device_name
from dra_driver.model.mode import Mode
from dra_driver.model.names import CLASS_DRS, CLASS_SHARED, CLASS_WHOLE, DRIVER, pool_name
from dra_driver.model.pci import PciAddress

CARDS: Final = tuple(PciAddress.parse(f"0000:{bus:02x}:00.0") for bus in (0x0D, 0x0E, 0x1D, 0x1E))
FREE, SLICED, DIVIDED, TAKEN = CARDS
FOREIGN: Final = PciAddress.parse("0000:2d:00.0")

_CLASSES: Final = {Mode.WHOLE: CLASS_WHOLE, Mode.SHARED: CLASS_SHARED, Mode.DRS: CLASS_DRS}
_CAPACITIES: Final = {Mode.SHARED: "slices", Mode.DRS: "size"}


class Kind(StrEnum):
    """What the claim that is killed for has. Two of the same kind never fit the node."""

    WHOLE = "whole"
    SHARED = "shared"
    DRS = "drs"
    DRS_BESIDE = "drs beside another"


@dataclass(frozen=True, slots=True)
class Grant:
    """An allocation of one device; `amount` is 0 for a whole card."""

    mode: Mode
    card: PciAddress
    amount: int = 0
    share_id: str = field(default_factory=lambda: str(uuid.uuid4()))


def wanted(kind: Kind) -> Grant:
    """What a claim of that kind gets."""
    if kind is Kind.WHOLE:
        return Grant(Mode.WHOLE, FREE)
    if kind is Kind.SHARED:
        return Grant(Mode.SHARED, SLICED, 2)
    if kind is Kind.DRS:
        return Grant(Mode.DRS, FREE, 6)
    return Grant(Mode.DRS, DIVIDED, 3)


def bystanders() -> list[Grant]:
    """What other pods of the node run with all the time."""
    return [
        Grant(Mode.WHOLE, TAKEN),
        Grant(Mode.SHARED, SLICED, 3),
        Grant(Mode.DRS, DIVIDED, 1),
    ]


class Claims:
    """The claims of one node on the API server, in `namespace`."""

    def __init__(self, api: Client, namespace: str, node: str) -> None:
        self._api = api
        self._namespace = namespace
        self._node = node

    def add(self, name: str, grant: Grant) -> ClaimRef:
        """A claim with that allocation."""
        made = self._api.create(RESOURCE_CLAIMS, self._claim(name, grant))
        made["status"] = {"allocation": self._allocation(grant)}
        self._api.replace(RESOURCE_CLAIMS, made, subresource="status")
        return ClaimRef.of(made)

    def delete(self, ref: ClaimRef) -> None:
        """No more claim of that UID; nothing where there is none."""
        try:
            self._api.delete(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace, uid=ref.uid)
        except NotFound:
            return

    def told(self, ref: ClaimRef) -> list[Object]:
        """What its ``status.devices`` says of what was prepared."""
        found = self._api.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)
        return list((found.get("status") or {}).get("devices") or ())

    def _claim(self, name: str, grant: Grant) -> Object:
        exactly: Object = {"deviceClassName": _CLASSES[grant.mode]}
        if grant.amount:
            capacity = {_CAPACITIES[grant.mode]: str(grant.amount)}
            exactly["capacity"] = {"requests": capacity}
        return {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": RESOURCE_CLAIMS.kind,
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {"devices": {"requests": [{"name": "gcu", "exactly": exactly}]}},
        }

    def _allocation(self, grant: Grant) -> Object:
        share: Object = {}
        if grant.amount:
            consumed = {_CAPACITIES[grant.mode]: str(grant.amount)}
            share = {"shareID": grant.share_id, "consumedCapacity": consumed}
        result = {
            "request": "gcu",
            "driver": DRIVER,
            "pool": pool_name(self._node),
            "device": device_name(grant.mode, grant.card),
            **share,
        }
        field_ = {"key": "metadata.name", "operator": "In", "values": [self._node]}
        return {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field_]}]},
        }
