"""Reports when certificates expire: as a metric always, in the last month as an event every day."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import Final

from prometheus_client import Gauge

from controller.own_pod import OwnPod
from dra_driver.model.errors import GcuError

logger = logging.getLogger(__name__)

REASON: Final = "GcuCertificateExpires"
DAY: Final = 86400.0
WARNED: Final = 30 * DAY

RENEW: Final = "renew it: helm upgrade does so where helm created it"

_EVERY: Final = 60.0


@dataclass(slots=True)
class Expiry:
    """`ends` gives until when each certificate is valid, by a name of which `descriptions` has
    what the certificate is, and how it is renewed. `gauge` has the label ``certificate``; `now` is
    Unix time."""

    ends: Callable[[], Mapping[str, float]]
    descriptions: Mapping[str, tuple[str, str]]
    gauge: Gauge
    own_pod: OwnPod
    _: KW_ONLY
    now: Callable[[], float]
    _due: float = 0.0
    _report_due: dict[str, float] = field(default_factory=dict)

    def check(self) -> None:
        """Update the metric and send due events. To be called often; works once a minute."""
        now = self.now()
        if now < self._due:
            return
        self._due = now + _EVERY
        try:
            ends = self.ends()
        except GcuError as error:
            logger.warning("the certificates cannot be read: %s", error)
            return
        for which, end in ends.items():
            self.gauge.labels(which).set(end)
            if end - now <= WARNED and now >= self._report_due.get(which, 0.0):
                self._report_due[which] = now + DAY
                self._report(which, end, now)

    def _report(self, which: str, end: float, now: float) -> None:
        what, remedy = self.descriptions[which]
        verb = "expires" if end > now else "expired"
        note = f"{what} {verb} at {datetime.fromtimestamp(end, UTC):%Y-%m-%d %H:%M} UTC: {remedy}"
        logger.warning("%s", note)
        self.own_pod.report(REASON, note, "Serving")
