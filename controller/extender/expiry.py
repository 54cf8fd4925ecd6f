"""Reports when certificates expire: as a metric always, in the last month as an event every day."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from controller.extender.certificates import AUTHORITY, CLIENT, SERVER
from controller.extender.metrics import Metrics
from dra_driver.kube.api import Api
from dra_driver.kube.errors import KubeError
from dra_driver.kube.events import EventType, Recorder
from dra_driver.kube.resources import PODS
from dra_driver.model.claim import Object
from dra_driver.model.errors import GcuError

logger = logging.getLogger(__name__)

REASON: Final = "GcuCertificateExpires"
DAY: Final = 86400.0
WARNED: Final = 30 * DAY

_EVERY: Final = 60.0
_RENEW: Final = "renew it: helm upgrade does so where helm created it"
_WHAT: Final = {
    SERVER: ("the certificate of the scheduler extender", _RENEW),
    CLIENT: (
        "the certificate that kube-scheduler shows the extender",
        f"{_RENEW}; then give the cluster's own kube-scheduler the new files, and restart it",
    ),
    AUTHORITY: (
        "the CA of the scheduler extender and of kube-scheduler",
        "replace it, and the certificates that it has issued",
    ),
}


class Expiry:
    """`ends` gives until when each certificate is valid; `now` is Unix time. Events are about the
    pod `name` of `namespace`, the extender's own."""

    def __init__(
        self,
        ends: Callable[[], Mapping[str, float]],
        metrics: Metrics,
        recorder: Recorder,
        api: Api,
        *,
        namespace: str,
        name: str,
        now: Callable[[], float],
    ) -> None:
        self._ends = ends
        self._metrics = metrics
        self._recorder = recorder
        self._api = api
        self._namespace = namespace
        self._name = name
        self._now = now
        self._due = 0.0
        self._report_due: dict[str, float] = {}

    def look(self) -> None:
        """To be called often; works once a minute."""
        now = self._now()
        if now < self._due:
            return
        self._due = now + _EVERY
        try:
            found = self._ends()
        except GcuError as error:
            logger.warning("until when certificates are valid is not known: %s", error)
            return
        for which, end in found.items():
            self._metrics.certificate_ends.labels(which).set(end)
            if end - now <= WARNED and now >= self._report_due.get(which, 0.0):
                self._report_due[which] = now + DAY
                self._report(which, end, now)

    def _report(self, which: str, end: float, now: float) -> None:
        what, remedy = _WHAT[which]
        verb = "expires" if end > now else "expired"
        note = f"{what} {verb} at {datetime.fromtimestamp(end, UTC):%Y-%m-%d %H:%M} UTC: {remedy}"
        logger.warning("%s", note)
        self._recorder.record(
            self._pod(), kind=EventType.WARNING, reason=REASON, note=note, action="Serving"
        )

    def _pod(self) -> Object:
        """With its UID, by which `kubectl describe` finds the event."""
        uid = ""
        try:
            uid = self._api.get(PODS, self._name, namespace=self._namespace)["metadata"]["uid"]
        except KubeError as error:
            logger.info("pod %s/%s: %s", self._namespace, self._name, error)
        metadata = {"name": self._name, "namespace": self._namespace, "uid": uid}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
