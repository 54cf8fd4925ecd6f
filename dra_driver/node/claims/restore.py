"""Restores what a prepared claim lacks: DRS instances that are gone, its CDI file."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from dra_driver.model.claims.owner import Owner
from dra_driver.model.errors import HardwareError
from dra_driver.model.instance import Instance
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.files import CdiSpecs
from dra_driver.node.checkpoint.ledger import PreparedClaim
from dra_driver.node.checkpoint.records import PreparedDevice
from dra_driver.node.claims.device_ops import DeviceOps
from dra_driver.node.claims.failures import DeviceCircuitBreaker

logger = logging.getLogger(__name__)


class RecreatedInstance(msgspec.Struct, frozen=True):
    """`after` replaces `before` under a prepared claim. `before` is None where the record does not
    name it: the agent was killed, or failed, between the check and the create. The claim's CDI file
    names the new instance. The environment of a running container still names the old one, and
    nobody can change that."""

    owner: Owner
    card: PciAddress
    before: Instance | None
    after: Instance

    @property
    def text(self) -> str:
        """What happened and what to do, for people."""
        gone = f" {self.before}" if self.before is not None else ""
        return (
            f"{self.owner.title}: its DRS instance{gone} on card {self.card} was gone, and "
            f"{self.after} was made in its place; a container that started before has the old one "
            "in TOPS_VISIBLE_DEVICES and cannot use the new one: restart its pod"
        )


OnRecreated = Callable[[RecreatedInstance], None]
"""Called for each instance that was lost under a claim whose containers may run. Neither raises nor
waits."""


class Outcome(StrEnum):
    """What recovery did for an owner."""

    UNCHANGED = "nothing was to be done"
    ROLLED_BACK = "an unfinished prepare was undone"
    FINISHED = "what had begun was finished"
    RECREATED = "its DRS instance was gone, and was made again"
    RENDERED = "its CDI file was missing or outdated, and was written"
    ADOPTED = "taken into the journal from its CDI file"
    REMOVED = "its CDI file could not be read, and was removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Each method is called with the locks of the owner and of its cards held."""

    specs: CdiSpecs
    device_ops: DeviceOps
    failures: DeviceCircuitBreaker
    on_recreated: OnRecreated

    def restore(self, held: PreparedClaim, *, is_requested: bool = False) -> Outcome:
        """Create the missing devices of a prepared claim again, and its CDI file.

        If the cards cannot be examined, this counts as a failure of the claim only if the kubelet
        requests it: otherwise a container may run with it.
        """
        attempt = self.failures.attempt(held.owner, held.devices)
        with attempt if is_requested else nullcontext():
            missing = self._missing(held)
            if not missing:
                outcome = self.render(held)
        if missing:
            self._recreate(held, missing)
            return Outcome.RECREATED
        if missing is not None:
            self.failures.on_prepared(held.owner)
        return outcome

    def render(self, held: PreparedClaim) -> Outcome:
        """Write the CDI file where it is missing or outdated."""
        return Outcome.RENDERED if self.specs.refresh(held) else Outcome.UNCHANGED

    def _recreate(self, held: PreparedClaim, missing: frozenset[PciAddress]) -> None:
        may_run = self.specs.exists(held.owner.uid)

        def on_made(device: PreparedDevice, made: Instance) -> None:
            if may_run:
                told = RecreatedInstance(held.owner, device.card, device.instance, made)
                self.on_recreated(told)

        with self.failures.attempt(held.owner, held.devices):
            cards = self.specs.read_cards(missing, held.devices)
            devices = self.device_ops.recreate(held.owner, held.devices, cards, on_made=on_made)
            self.render(replace(held, devices=devices))
        made = (device.device_name for device in held.devices if device.card in missing)
        self.failures.on_prepared(held.owner, made)

    def _missing(self, held: PreparedClaim) -> frozenset[PciAddress] | None:
        """The cards on which devices are missing. None where the cards do not answer, and a
        container may run with the claim."""
        try:
            return self.device_ops.missing(held.devices)
        except HardwareError:
            if not self.specs.exists(held.owner.uid):
                raise
            logger.warning("%s is not examined", held.owner.title, exc_info=True)
            return None
