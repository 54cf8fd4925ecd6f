"""Reports a damaged journal."""

from __future__ import annotations

from pathlib import Path

from dra_driver.agent.events import JOURNAL_DAMAGED, EventReporter
from dra_driver.agent.metrics import Metrics


class DamageReporter:
    """Counts damaged journals, and records an event for each."""

    def __init__(self, metrics: Metrics, event_reporter: EventReporter) -> None:
        self._metrics = metrics
        self._event_reporter = event_reporter

    def on_quarantine(self, damaged: Path) -> None:
        """The journal has moved its file to `damaged`, for a person to examine."""
        self._metrics.journal_quarantined()
        self._event_reporter.warning(
            JOURNAL_DAMAGED,
            f"the journal was damaged and is rebuilt; the damaged file is {damaged}",
        )
