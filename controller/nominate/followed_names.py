"""Whether kube-scheduler binds pods to the nodes that are proposed."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from controller.nominate.metrics import NominationMetrics
from controller.write.node_hint import NodeHint

logger = logging.getLogger(__name__)

NAMES_STOPPED: Final = "GcuNodeNamesStopped"
NAMES_STOPPED_NOTE: Final = (
    "kube-scheduler followed fewer than half of the last 200 names of nodes. From now on this "
    "controller proposes nodes by preferred node affinity, which packs worse, until it restarts. "
    "See which plugins of kube-scheduler filter those nodes: docs/user/which-allocator.md"
)

_WINDOW: Final = 200  # names


class FollowedNames:
    """How often kube-scheduler bound a pod to the proposed node. `hint` is how the next node is
    proposed. If fewer than half of the last 200 were followed, it is a preferred affinity from then
    on, until the process ends. `on_stop` is called when that begins. One instance, one thread."""

    def __init__(self, metrics: NominationMetrics, on_stop: Callable[[], object]) -> None:
        self._metrics = metrics
        self._on_stop = on_stop
        self._last: deque[bool] = deque(maxlen=_WINDOW)
        self.hint = NodeHint.NAME

    def record(self, *, followed: bool) -> None:
        """A pod was bound whose node was proposed."""
        self._metrics.bound.labels(str(followed).lower()).inc()
        self._last.append(followed)
        if (
            self.hint is NodeHint.NAME
            and len(self._last) == _WINDOW
            and sum(self._last) * 2 < _WINDOW
        ):
            self._stop()

    def _stop(self) -> None:
        logger.warning(
            "kube-scheduler followed less than half of the last names: from now on nodes are "
            "proposed by preferred affinity, which packs worse"
        )
        self.hint = NodeHint.AFFINITY
        self._metrics.names_stopped.set(1)
        self._on_stop()
