"""The controller in threads of the test's process, on the client that it has in a pod."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from prometheus_client import CollectorRegistry

from controller import app
from controller.cache.claims import MANAGER
from controller.settings import ControllerSettings
from dra_driver.kube.client import connect
from dra_driver.kube.event_filter import EventLimits
from dra_driver.model.effects import Effects

QUIET, PATIENCE, RETRY = 0.1, 0.4, 0.4
_SHORT: Final[dict[str, Any]] = {
    "quiet_time": QUIET,
    "scheduling_patience": PATIENCE,
    "node_retry": RETRY,
    "lease_duration": 1.0,
    "lease_renew_deadline": 0.7,
    "lease_retry": 0.1,
}
"""Durations in seconds. Tests wait for some of them."""


class Replica:
    """A replica of that name, which runs until `stop`. `skew` is the error of its clock in
    seconds, `settings` are others than the short ones."""

    def __init__(
        self, kubeconfig: Path, name: str = "replica-0", *, skew: float = 0.0, **settings: Any
    ) -> None:
        self.user = f"{MANAGER}/{name}"
        self._registry = CollectorRegistry()
        self._api = connect(kubeconfig, effects=Effects(), user_agent=self.user, at_once=16)
        # A test need not wait for the next event: there are half a minute between two elsewhere.
        with patch.object(app, "_EVENT_LIMITS", EventLimits(burst=1000)):
            self._controller = app.Controller(
                ControllerSettings(**(_SHORT | settings)),
                self._api,
                self._registry,
                identity=name,
                now=_clock(skew),
            )
        self._controller.start()

    def leads(self) -> bool:
        return bool(self.metric("gcu_controller_leading"))

    def is_ready(self) -> bool:
        return self._controller.ready() is None

    def metric(self, name: str, **labels: str) -> float:
        found = self._registry.get_sample_value(name, labels)
        assert found is not None, name
        return found

    def stop(self) -> None:
        """As a pod that is asked to end. It gives the lease back."""
        self._controller.stop()
        self._api.close()


def _clock(skew: float) -> Callable[[], datetime]:
    return lambda: datetime.now(UTC) + timedelta(seconds=skew)
