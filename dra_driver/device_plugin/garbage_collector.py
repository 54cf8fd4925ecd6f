"""Releases the devices of containers that have ended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

from dra_driver.device_plugin.inventory import NodeViewSource
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.errors import GcuError
from dra_driver.node.checkpoint.ledger import Ledger, PreparedClaim
from dra_driver.node.checkpoint.records import ClaimStep
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.results import in_parallel
from dra_driver.telemetry.logs import new_call
from dra_driver.util.background import Background
from dra_driver.util.hooks import OnChange

logger = logging.getLogger(__name__)

DeviceSets = Collection[frozenset[str]]
"""The IDs of the devices of each container."""


StillInUse = Callable[[DeviceSets], DeviceSets]
"""Those of `allocated` that a container has now; raises GcuError if that is unknown."""


@dataclass(eq=False, kw_only=True)
class GarbageCollector(Background):
    """Runs every `interval` seconds, in its own thread. `on_change` is called when devices were
    released."""

    view: NodeViewSource
    claim_manager: PreparedClaimManager
    still_in_use: StillInUse
    on_change: OnChange
    interval: float = 10.0

    def __post_init__(self) -> None:
        super().__init__("device-gc")
        self._missed: Mapping[frozenset[str], PreparedClaim] = {}
        self.problem: str | None = None

    def run_once(self) -> None:
        """Run once; a failure is in `problem`.

        An allocation ends if two runs in a row did not find it in the kubelet's record, and the
        kubelet did not request its devices between them: it records an Allocate only after the
        answer.
        """
        try:
            # Before the record is read: a later allocation is not in it.
            allocated = _allocated(self.view().ledger)
            in_use = self.still_in_use(allocated) if allocated else ()
        except GcuError as error:
            if self.problem != str(error):
                logger.warning("which containers have ended is unknown: %s", error)
            self.problem = str(error)
            return
        self.problem = None
        missed = {devices: held for devices, held in allocated.items() if devices not in in_use}
        ended = [held for devices, held in missed.items() if self._missed.get(devices) == held]
        self._missed = missed
        # So that a card that hangs does not delay the others.
        in_parallel({held.owner.uid: partial(self._end, held) for held in ended})
        if ended:
            self.on_change()

    def _end(self, held: PreparedClaim) -> None:
        try:
            if self.claim_manager.release(held):
                logger.info("%s has ended", held.owner.title)
        except GcuError as error:
            # The journal has it as being unprepared, and the reconcile loop continues that.
            logger.warning("%s is not released yet: %s", held.owner.title, error)

    def run(self) -> None:
        while not self._wait(self.interval):
            with new_call("release"):
                self.run_once()


def _allocated(ledger: Ledger) -> dict[frozenset[str], PreparedClaim]:
    """By the IDs of the devices."""
    return {
        frozenset(map(str, held.owner.devices)): held
        for held in ledger.claims.values()
        if isinstance(held.owner, ContainerAllocation) and held.state is ClaimStep.PREPARE_COMPLETED
    }
