"""Notices an upgrade of the cluster that changes how this node is to be served."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

from dra_driver.agent.lifecycle.serving_mode import ServingDecision
from dra_driver.model.errors import GcuError
from dra_driver.util.background import Background, Wait

logger = logging.getLogger(__name__)

# Seconds between two checks, or up to twice as long: the agents of all nodes may have started
# together, and must not ask together.
_CHECK_EVERY = 300.0


Choose = Callable[[], ServingDecision]
"""`ServingModeSelector.choose`."""


OnDecision = Callable[[ServingDecision], None]
"""Called once, with the first decision for another mode."""


class ServingModeWatcher(Background):
    """Calls `choose` every five minutes in its own thread, until it decides for another mode."""

    def __init__(
        self,
        choose: Choose,
        on_decision: OnDecision,
        *,
        wait: Wait | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`wait(seconds)` sleeps, and returns True when the watcher was stopped; `draw` gives
        numbers in [0, 1)."""
        super().__init__("serving-mode", wait=wait)
        self._choose = choose
        self._on_decision = on_decision
        self._draw = draw
        self._present: ServingDecision | None = None

    def follow(self, present: ServingDecision) -> None:
        """Start, with the decision that holds now."""
        self._present = present
        self.start()

    def is_alive(self) -> bool:
        """Whether the thread runs, or has ended because it found another mode."""
        return super().is_alive() or self._present is None

    def run(self) -> None:
        while not self._wait(_CHECK_EVERY * (1.0 + self._draw())):
            try:
                decision = self._choose()
            except GcuError as error:
                logger.info("whether the cluster serves DRA is not known now: %s", error)
                continue
            if self._present is not None and decision.mode is not self._present.mode:
                self._present = None
                self._on_decision(decision)
                return
