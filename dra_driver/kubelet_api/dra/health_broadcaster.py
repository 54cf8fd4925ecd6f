"""Tells everybody who listens how the devices are: at once, when it changes, and again in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_driver.kubelet_api.broadcaster import Broadcaster
from dra_driver.kubelet_api.dra.health import DeviceHealth, HealthSource

TIMEOUT: Final = 30
"""Seconds for which a list holds: what the kubelet takes where nothing is said (1.36.3,
``pkg/kubelet/cm/dra/healthinfo.go``, ``DefaultHealthTimeout``). Said all the same, so that it
cannot change under us."""


class HealthBroadcaster(Broadcaster[Sequence[DeviceHealth]]):
    """The lists of `source`."""

    def __init__(self, source: HealthSource, *, resend: float = TIMEOUT / 3) -> None:
        """`resend` is after how many seconds a list is sent again: twice may it get lost."""
        super().__init__(source, what="the devices' health", resend=resend)
