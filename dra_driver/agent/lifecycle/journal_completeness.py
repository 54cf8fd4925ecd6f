"""Whether the journal may have lost records, and what people hear of that."""

from __future__ import annotations

from pathlib import Path

from dra_driver.agent.events import JOURNAL_DAMAGED, EventReporter
from dra_driver.agent.metrics import Metrics


class JournalCompleteness:
    """Complete until `mark_incomplete`; complete again when a whole reconciliation that began
    afterwards has rebuilt what was lost."""

    def __init__(self) -> None:
        self._marks = 0
        self._rebuilt = 0

    @property
    def marks(self) -> int:
        """How often the journal was marked as incomplete."""
        return self._marks

    @property
    def is_complete(self) -> bool:
        return self._marks == self._rebuilt

    def mark_incomplete(self) -> None:
        """Records may have been lost until now."""
        self._marks += 1

    def mark_rebuilt(self, marks: int) -> None:
        """What was lost up to so many `marks` has been rebuilt."""
        self._rebuilt = marks


class DamageReporter:
    """Called when the journal has moved a damaged file aside."""

    def __init__(
        self, completeness: JournalCompleteness, metrics: Metrics, event_reporter: EventReporter
    ) -> None:
        self._completeness = completeness
        self._metrics = metrics
        self._event_reporter = event_reporter

    def on_quarantine(self, damaged: Path) -> None:
        """`damaged` is where the file is kept for a person."""
        self._completeness.mark_incomplete()
        self._metrics.journal_quarantined()
        self._event_reporter.warning(
            JOURNAL_DAMAGED,
            f"the journal was damaged and is rebuilt; the damaged file is {damaged}",
        )
