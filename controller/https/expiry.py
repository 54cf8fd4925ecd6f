"""Reports when certificates expire: as a metric always, in the last month as an event every day."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from prometheus_client import Gauge

from dra_driver.kube.api import Api
from dra_driver.kube.errors import KubeError
from dra_driver.kube.events import EventType, Recorder
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError

logger = logging.getLogger(__name__)

REASON: Final = "GcuCertificateExpires"
DAY: Final = 86400.0
WARNED: Final = 30 * DAY

RENEW: Final = "renew it: helm upgrade does so where helm created it"

_EVERY: Final = 60.0


class Expiry:
    """`ends` gives until when each certificate is valid, by a name of which `descriptions` has
    what the certificate is, and how it is renewed. `gauge` has the label ``certificate``; `now` is
    Unix time. Events are about the pod `name` of `namespace`, this program's own."""

    def __init__(
        self,
        ends: Callable[[], Mapping[str, float]],
        descriptions: Mapping[str, tuple[str, str]],
        gauge: Gauge,
        recorder: Recorder,
        api: Api,
        *,
        namespace: str,
        name: str,
        now: Callable[[], float],
    ) -> None:
        self._ends = ends
        self._descriptions = descriptions
        self._gauge = gauge
        self._recorder = recorder
        self._api = api
        self._namespace = namespace
        self._name = name
        self._now = now
        self._due = 0.0
        self._report_due: dict[str, float] = {}

    def check(self) -> None:
        """Update the metric and send due events. To be called often; works once a minute."""
        now = self._now()
        if now < self._due:
            return
        self._due = now + _EVERY
        try:
            found = self._ends()
        except GcuError as error:
            logger.warning("the certificates cannot be read: %s", error)
            return
        for which, end in found.items():
            self._gauge.labels(which).set(end)
            if end - now <= WARNED and now >= self._report_due.get(which, 0.0):
                self._report_due[which] = now + DAY
                self._report(which, end, now)

    def _report(self, which: str, end: float, now: float) -> None:
        what, remedy = self._descriptions[which]
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
