"""Ends the grants whose containers are gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dra_driver.model.errors import GcuError
from dra_driver.model.owner import ContainerAllocation
from dra_driver.node.checkpoint.ledger import Ledger, PreparedClaim, State
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.telemetry.logs import new_call
from dra_driver.util.background import Background

logger = logging.getLogger(__name__)

_MOST_AT_ONCE: Final = 16

DeviceSets = Collection[frozenset[str]]
"""The IDs that each container has."""


class GarbageCollector(Background):
    """Looks every `interval` seconds, in a thread of its own.

    `recorded` gives which of these sets some container has now, and raises GcuError where that is
    not known; `changed` is called when something was released.
    """

    def __init__(
        self,
        *,
        ledger: Callable[[], Ledger],
        claim_manager: PreparedClaimManager,
        recorded: Callable[[DeviceSets], DeviceSets],
        changed: Callable[[], None],
        interval: float = 10.0,
    ) -> None:
        super().__init__("releaser")
        self._ledger = ledger
        self._claim_manager = claim_manager
        self._recorded = recorded
        self._changed = changed
        self._interval = interval
        self._missed: Mapping[str, PreparedClaim] = {}
        self.problem: str | None = None

    def run_once(self) -> None:
        """One look; what is wrong with it is in `problem`.

        A grant ends when this look and the one before missed it, and nobody asked for its devices
        in between: the kubelet records an Allocate only after it has our answer.
        """
        try:
            # Before the record is read: what is granted later is not in it.
            grants = _grants(self._ledger())
            recorded = self._recorded({*map(_devices, grants.values())}) if grants else ()
        except GcuError as error:
            if self.problem != str(error):
                logger.warning("it is not known which containers have ended: %s", error)
            self.problem = str(error)
            return
        self.problem = None
        missed = {uid: held for uid, held in grants.items() if _devices(held) not in recorded}
        ended = [held for uid, held in missed.items() if self._missed.get(uid) == held]
        self._missed = missed
        self._release(ended)

    def _release(self, ended: Sequence[PreparedClaim]) -> None:
        if not ended:
            return
        # A card that hangs holds up none of the others.
        with ThreadPoolExecutor(min(len(ended), _MOST_AT_ONCE), "release") as pool:
            list(pool.map(self._end, ended))
        self._changed()

    def _end(self, held: PreparedClaim) -> None:
        try:
            if self._claim_manager.release(held):
                logger.info("%s has ended", held.owner.title)
        except GcuError as error:
            # It is recorded as being unprepared, and the look at the node goes on with it.
            logger.warning("%s is not released yet: %s", held.owner.title, error)

    def run(self) -> None:
        while not self._wait(self._interval):
            with new_call("release"):
                self.run_once()


def _grants(ledger: Ledger) -> dict[str, PreparedClaim]:
    return {
        uid: held
        for uid, held in ledger.claims.items()
        if isinstance(held.owner, ContainerAllocation) and held.state is State.PREPARE_COMPLETED
    }


def _devices(held: PreparedClaim) -> frozenset[str]:
    devices = held.owner.devices if isinstance(held.owner, ContainerAllocation) else ()
    return frozenset(map(str, devices))
