"""The mutation of new claims where kube-scheduler allocates (docs/adr/0038 and 0040)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from controller.allocator.packing.policy import Policy
from controller.cache.published_kinds import PublishedKinds
from controller.webhook.admin_access import for_administrators
from controller.webhook.alternatives import CardParts
from controller.webhook.capacity import as_stored, by_parts, written_devices
from controller.webhook.review import Operation, Review
from dra_driver.selector.allowance import Allowance
from dra_driver.selector.selector import Selectors

_SECONDS: Final = 0.5
"""For the selectors of one claim: other calls wait meanwhile, and an API server for 5 s."""


class CapacityWriter:
    """Every replica has one, with what its own watches report. `policy` says which part of a card
    is preferred. Thread-safe. `clock` returns seconds."""

    def __init__(
        self,
        published: PublishedKinds,
        policy: Policy,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._published = published
        self._policy = policy
        self._lock = threading.Lock()
        self._selectors = Selectors(Allowance(clock))

    def __call__(self, review: Review) -> list[Operation]:
        """The patch for a ResourceClaim (resource.k8s.io/v1). Raises Refused and InvalidValue."""
        claim, stored = review.obj, review.stored
        if stored is not None and stored["spec"] == claim["spec"]:
            return []
        classes = self._published.classes.by_name
        Selectors.load()  # once for the process; it takes longer than a claim may
        with self._lock:
            self._selectors.allowance.begin(_SECONDS)
            parts = CardParts(self._published.kinds, self._policy, self._selectors)
            choose = by_parts(claim, parts) if stored is None else as_stored(stored)
            devices = for_administrators(written_devices(claim, classes, choose), stored)
        if devices == (claim["spec"].get("devices") or {}):
            return []
        return [{"op": "replace", "path": "/spec/devices", "value": devices}]
