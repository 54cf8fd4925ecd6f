"""What claims had of which neither the journal nor a CDI file tells any more: both were lost, and
their DRS instances are still there.

The agent may not list claims (ADR 8), so it learns of one when the kubelet names it. Then the claim
itself proves whose an instance is: its ``status.devices``, in which this driver wrote the uuid.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from dra_driver.model.errors import InvalidValue
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER
from dra_driver.model.pci import PciAddress
from dra_driver.node.failures import blame
from dra_driver.node.ledger import Ledger
from dra_driver.node.records import Hold

logger = logging.getLogger(__name__)

Holds = tuple[Hold, ...]


class Listing(Protocol):
    """See `dra_driver.hardware.drs.Drs.instances`."""

    def instances(self, address: PciAddress) -> tuple[Instance, ...]: ...


class Lost:
    """`suspected` says whether anything may be lost: else nobody is asked."""

    def __init__(
        self, drs: Listing, *, ledger: Callable[[], Ledger], suspected: Callable[[], bool]
    ) -> None:
        self._drs = drs
        self._ledger = ledger
        self._suspected = suspected

    @property
    def suspected(self) -> bool:
        return self._suspected()

    def found(self, claim: Mapping[str, Any], holds: Holds) -> Holds | None:
        """The holds with those of their instances that are there; None where none is.

        Without a uuid there is no proof: an id may be another instance's. Raises HardwareError
        where a card cannot be read, JournalError.
        """
        if not self._suspected():
            return None
        told = _told(claim)
        found = tuple(
            replace(hold, instance=self._there(hold, told.get((hold.device, hold.share_id))))
            for hold in holds
        )
        return found if any(hold.instance is not None for hold in found) else None

    def _there(self, hold: Hold, told: Instance | None) -> Instance | None:
        if hold.mode is not Mode.DRS or told is None:
            return None
        if told.is_in(self._ledger().instances(hold.card)):  # another claim's
            return None
        with blame(hold.device):
            listed = self._drs.instances(hold.card)
        return next((one for one in listed if one.uuid == told.uuid), None)


def _told(claim: Mapping[str, Any]) -> dict[tuple[str, str | None], Instance]:
    """The instances in ``status.devices``, by device and share."""
    entries = (claim.get("status") or {}).get("devices") or ()
    return {
        (entry["device"], entry.get("shareID")): instance
        for entry in entries
        if entry["driver"] == DRIVER and (instance := _instance(entry.get("data"))) is not None
    }


def _instance(data: Any) -> Instance | None:
    if not isinstance(data, dict):
        return None
    number, profile, uuid = (data.get(key) for key in ("instanceID", "profile", "instanceUUID"))
    if type(number) is not int or not isinstance(profile, str) or not isinstance(uuid, str):
        return None
    try:
        return Instance(number, profile, uuid)
    except InvalidValue as error:
        logger.warning("a claim's status tells of an instance that is none: %s", error)
        return None
