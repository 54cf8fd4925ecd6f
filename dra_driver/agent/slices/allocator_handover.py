"""The change from one allocator to the other, card by card (ADR 27).

Two allocators must never grant devices of one card at the same time. The slices alone cannot ensure
that, because each allocator may decide on a version that it has not seen replaced yet.
"""

from __future__ import annotations

import logging
import time
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from dra_driver.agent.slices.device_layout import DevicesSource, by_name
from dra_driver.kube.api import Api
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import LEASES
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    ALLOCATOR_CONTROLLER,
    ALLOCATOR_SCHEDULER,
    ANNOTATION_ALLOCATOR,
    TAINT_ALLOCATED_BY,
)
from dra_driver.model.pci import PciAddress
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_TAINTED_FOR: Final = 60.0
"""Seconds for which kube-scheduler gets to see the taint before a card loses its counters. What it
has decided before is written within that time."""


@dataclass(eq=False)
class AllocatorHandover:
    """For the `wanted` allocator, which the chart names.

    To kube-scheduler: cards get counters, and lose the taint ``allocated-by``, once the controller
    has acknowledged in its Lease that it grants nothing more. To the controller: cards get the
    taint first, and lose their counters a minute later; until then the controller refuses them.

    `lease` is the namespace and the name of the Lease by which the controller is elected. The
    publisher asks every few seconds. Not thread-safe.
    """

    api: Api
    lease: tuple[str, str]
    wanted: str
    _: KW_ONLY
    published: DevicesSource
    clock: Clock = time.monotonic
    _acknowledged: bool = field(init=False, default=False)
    _tainted_since: dict[PciAddress, float] = field(init=False, default_factory=dict)

    def allocator(self) -> str:
        """For whom a free card is to be published. Raises KubeError if that is unknown and nothing
        is published, as after a reboot of the node: cards in use keep the layout that they get."""
        if self.wanted == ALLOCATOR_CONTROLLER:
            return ALLOCATOR_CONTROLLER
        if not self._acknowledged:
            self._acknowledged = self._has_counters() or self._reads_acknowledgement()
        return ALLOCATOR_SCHEDULER if self._acknowledged else ALLOCATOR_CONTROLLER

    def cards_to_retain(self) -> frozenset[PciAddress]:
        """Cards that keep their published layout, though no claim may use them: kube-scheduler may
        not have seen their taint yet."""
        if self.wanted != ALLOCATOR_CONTROLLER:
            return frozenset()
        now = self.clock()
        retained: set[PciAddress] = set()
        known, self._tainted_since = self._tainted_since, {}
        for card, _, device in by_name(self.published()):
            if not device.get("consumesCounters"):
                continue
            if _is_tainted(device):
                since = self._tainted_since.setdefault(card, known.get(card, now))
            else:
                since = now
            if now - since < _TAINTED_FOR:
                retained.add(card)
        return frozenset(retained)

    def _has_counters(self) -> bool:
        """Only after an acknowledgement a card gets counters. With the taint they are from before
        the controller allocated: a card in use keeps them until its last claim ends."""
        return any(
            each.get("consumesCounters") and not _is_tainted(each) for each in self.published()
        )

    def _reads_acknowledgement(self) -> bool:
        namespace, name = self.lease
        try:
            lease = self.api.get(LEASES, name, namespace=namespace)
        except NotFound:
            return False
        except KubeError as error:
            if not self.published():
                raise
            logger.warning("cannot read who allocates; trying again: %s", error)
            return False
        found = (lease["metadata"].get("annotations") or {}).get(ANNOTATION_ALLOCATOR)
        if found == ALLOCATOR_SCHEDULER:
            logger.info("the controller has acknowledged that kube-scheduler allocates")
            return True
        logger.info("waiting until the controller acknowledges that kube-scheduler allocates")
        return False


def _is_tainted(device: Object) -> bool:
    """Whether kube-scheduler keeps away from the device."""
    return any(each["key"] == TAINT_ALLOCATED_BY for each in device.get("taints", ()))
