"""Sends the devices' health to the kubelet: at once when it changes, and again in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_driver.kubelet_api.broadcaster import Broadcaster
from dra_driver.kubelet_api.dra.health import DeviceHealth, HealthSource

TIMEOUT: Final = 30
"""Seconds for which a list is valid. It is the kubelet's default (1.36.3,
``pkg/kubelet/cm/dra/healthinfo.go``, ``DefaultHealthTimeout``), sent all the same, so that another
default does not change it."""


class HealthBroadcaster(Broadcaster[Sequence[DeviceHealth]]):
    """The lists of `source`."""

    def __init__(self, source: HealthSource, *, resend: float = TIMEOUT / 3) -> None:
        """A list is sent again after `resend` seconds: two may get lost."""
        super().__init__(source, what="the devices' health", resend=resend)
