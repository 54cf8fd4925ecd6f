"""Lifts our scheduling gate from pods that have it from before.

While claims were served, the webhook set the gate, and the controller that allocated or named nodes
lifted it. The extender knows no claims, so these pods would wait without end, and without a reason.
Once the gate is lifted, kube-scheduler says what they lack.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from controller.cache.keys import uid_of
from dra_driver.kube.api import Change, ObjectApi, PatchType
from dra_driver.kube.errors import Invalid, NotFound
from dra_driver.kube.resources import PODS
from dra_driver.kube.scheduling_gate import gate_lifted, has_gate
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError

logger = logging.getLogger(__name__)


class LeftoverGates:
    """A `dra_driver.kube.watch.WatchHandler` of all pods. Safe for several threads."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._gated: dict[str, Object] = {}  # by UID

    def on_replace(self, items: Sequence[Object]) -> None:
        gated = {uid_of(pod): pod for pod in items if has_gate(pod)}
        with self._lock:
            self._gated = gated

    def on_event(self, change: Change, obj: Object) -> None:
        with self._lock:
            if change is not Change.DELETED and has_gate(obj):
                self._gated[uid_of(obj)] = obj
            else:
                self._gated.pop(uid_of(obj), None)

    def lift(self) -> None:
        """Lift the gates. What fails is tried again with the next call."""
        with self._lock:
            gated = list(self._gated.values())
        for pod in gated:
            namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            try:
                self._api.patch(
                    PODS,
                    name,
                    gate_lifted(pod),
                    namespace=namespace,
                    patch_type=PatchType.STRATEGIC_MERGE,
                )
                logger.info("lifted the gate of pod %s/%s", namespace, name)
            except (NotFound, Invalid):
                pass  # another pod has its name by now
            except GcuError as error:  # also where another replica leads by now
                logger.warning("the gate of pod %s/%s stays for now: %s", namespace, name, error)
                continue
            with self._lock:
                if self._gated.get(uid_of(pod)) is pod:
                    del self._gated[uid_of(pod)]
