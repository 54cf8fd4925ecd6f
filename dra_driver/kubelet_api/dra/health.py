"""The health of devices as the kubelet gets it, and the interface of its source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final

import msgspec

# k8s.io/api/core/v1, ResourceHealthMessageMaxLength. The kubelet would cut within a character, and
# the API server would refuse that.
_LONGEST: Final = 1024


class Health(Enum):
    """The values of both versions of the API."""

    UNKNOWN = "UNKNOWN"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"


class DeviceHealth(msgspec.Struct, frozen=True):
    """The health of one published device.

    The kubelet finds a pod's devices by `pool` and `device`, as prepare returned them. It shows
    `message` in the pod's status. `updated` is the Unix time in seconds at which the health was
    read.
    """

    pool: str
    device: str
    health: Health
    updated: int
    message: str = ""

    @property
    def cut_message(self) -> str:
        """The message, cut to the length that the API allows."""
        raw = self.message.encode()
        if len(raw) <= _LONGEST:
            return self.message
        return raw[: _LONGEST - 3].decode(errors="ignore") + "..."


HealthSource = Callable[[], Sequence[DeviceHealth]]
"""The health of all devices of the driver on this node. Called by several threads at once;
neither raises nor waits."""
