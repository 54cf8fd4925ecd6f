"""A circuit breaker at a clock of its own."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import (
    GcuError,
    HardwareError,
)
from dra_driver.model.mode import Mode
from dra_driver.node.claims.failures import DeviceCircuitBreaker, attribute_to
from tests.unit.node.world import hold

DRS = hold(0, mode=Mode.DRS, share_id="s", consumed={"size": "1"})
DEVICE, OTHER = DRS.device_name, hold(1, mode=Mode.DRS).device_name


def ref(name: str) -> ClaimRef:
    return ClaimRef("team", name, f"uid-{name}")


class Counted:
    """Failures at a clock of their own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[str] = []
        self.failures = DeviceCircuitBreaker(
            on_tripped=lambda device, _: self.told.append(device), clock=lambda: self.now
        )

    def fail(
        self, name: str, times: int = 1, error: GcuError | None = None, device: str | None = DEVICE
    ) -> None:
        for _ in range(times):
            with (
                pytest.raises(GcuError),
                self.failures.attempt(ref(name), (DRS,)),
                attribute_to(device),
            ):
                raise error or HardwareError("efsmi said no")

    def succeed(self, name: str) -> None:
        self.failures.on_prepared(ref(name), [DEVICE])

    def closed_for(self) -> float:
        """Seconds, to the minute."""
        start, minutes = self.now, 0
        while DEVICE in self.failures.tripped():
            minutes += 1
            self.now = start + 60 * minutes
        self.now = start
        return 60 * minutes
