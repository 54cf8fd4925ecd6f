"""What the kubelet is told about the health of devices, and the port that says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

# k8s.io/api/core/v1, ResourceHealthMessageMaxLength. The kubelet cuts by bytes, which can leave
# half a letter, and no API server takes that.
_LONGEST: Final = 1024


class Health(Enum):
    """The API's words, in one for both of its versions."""

    UNKNOWN = "UNKNOWN"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """One published device.

    The kubelet finds a pod's devices by `pool` and `device`, as prepare named them, and shows
    `message` to people beside the state. `updated` is the Unix time in seconds at which the state
    was seen.
    """

    pool: str
    device: str
    health: Health
    updated: int
    message: str = ""

    @property
    def shown(self) -> str:
        """The message, as much of it as the API takes."""
        raw = self.message.encode()
        if len(raw) <= _LONGEST:
            return self.message
        return raw[: _LONGEST - 3].decode(errors="ignore") + "..."


HealthSource = Callable[[], Sequence[DeviceHealth]]
"""Gives all devices of the driver on this node. It is called by several threads at once, and must
neither raise nor wait."""
