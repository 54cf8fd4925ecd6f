"""Notices that a cluster has changed so that the other way of serving it is right."""

from __future__ import annotations

import logging
from collections.abc import Callable

from dra_driver.agent.lifecycle.serving_mode import ServingDecision
from dra_driver.model.errors import GcuError
from dra_driver.util.background import Background, Wait

logger = logging.getLogger(__name__)

_LOOK_EVERY = 300.0


class ServingModeWatcher(Background):
    """Asks `choose` now and then, in a thread of its own, from `start` on; calls `changed` once
    when it says another way than that of the start."""

    def __init__(
        self,
        choose: Callable[[], ServingDecision],
        changed: Callable[[ServingDecision], None],
        *,
        wait: Wait | None = None,
    ) -> None:
        """`wait(seconds)` sleeps, and returns True when the watch was stopped."""
        super().__init__("way", wait=wait)
        self._choose = choose
        self._changed = changed
        self._present: ServingDecision | None = None

    def follow(self, present: ServingDecision) -> None:
        """Start, with what was chosen."""
        self._present = present
        self.start()

    def is_alive(self) -> bool:
        """Whether it still looks, or has seen what it looks for."""
        return super().is_alive() or self._present is None

    def run(self) -> None:
        """The thread's work."""
        while not self._wait(_LOOK_EVERY):
            try:
                choice = self._choose()
            except GcuError as error:
                logger.info("it is not known now what the cluster offers: %s", error)
                continue
            if self._present is not None and choice.mode is not self._present.mode:
                self._present = None
                self._changed(choice)
                return
