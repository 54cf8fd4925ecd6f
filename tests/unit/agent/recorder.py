"""A recorder of events that keeps them."""

from __future__ import annotations

from dra_driver.kube.events import EventType, Note
from dra_driver.model.claims.claim import Object


class ListRecorder:
    """Plays EventRecorder; `lines` are ``<reason> <note>``."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.recorded: list[tuple[Object, EventType, str]] = []

    def record(
        self, regarding: Object, *, kind: EventType, reason: str, note: Note, action: str
    ) -> float:
        self.lines.append(f"{reason} {note if isinstance(note, str) else note()}")
        self.recorded.append((regarding, kind, action))
        return 0.0
