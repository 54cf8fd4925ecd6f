"""Reports that kube-scheduler does not call the extender, or not as the chart configures it.

After an upgrade of the control plane its configuration may be gone. Pods are then bound by the
counts of the kubelets alone, and their node may refuse them.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from controller.extender.annotated_cluster import AnnotatedCluster
from controller.own_pod import OwnPod

logger = logging.getLogger(__name__)

BYPASSED: Final = "GcuExtenderBypassed"
MISCONFIGURED: Final = "GcuExtenderMisconfigured"

_MOST_NAMED: Final = 3
_PAGE: Final = "docs/user/scheduler-extender.md has the configuration"


class BypassReporter:
    """Each pod, and each verb that is called in a wrong way, is in one event about this
    controller's pod."""

    def __init__(self, cluster: AnnotatedCluster, lock: threading.Lock, own_pod: OwnPod) -> None:
        self._cluster = cluster
        self._lock = lock
        self._own_pod = own_pod
        self._reported: set[str] = set()
        self._misread: set[str] = set()

    def count(self) -> int:
        """The pods that run or start now and were placed by somebody else."""
        with self._lock:
            return len(self._cluster.placed_by_others())

    def check(self) -> None:
        """Report pods that are new. While this replica leads, periodically."""
        with self._lock:
            names = self._cluster.placed_by_others()
        new = sorted(names[uid] for uid in names.keys() - self._reported)
        self._reported = set(names)
        if new:
            more = f" and {len(new) - _MOST_NAMED} more" if len(new) > _MOST_NAMED else ""
            self._report(
                BYPASSED,
                f"pods with limits for GCUs were bound without this extender: "
                f"{', '.join(new[:_MOST_NAMED])}{more}. Their nodes may not admit them. Have the "
                f"kube-scheduler of such pods call it: {_PAGE}",
            )

    def on_unreadable_call(self, verb: str, error: str) -> None:
        """kube-scheduler made a call that cannot be read."""
        if verb not in self._misread:
            self._misread.add(verb)
            self._report(
                MISCONFIGURED,
                f"kube-scheduler calls {verb} of this extender in another way than the chart "
                f"configures it: {error}. {_PAGE}",
            )

    def _report(self, reason: str, note: str) -> None:
        logger.warning("%s", note)
        self._own_pod.report(reason, note, "WatchScheduler")
