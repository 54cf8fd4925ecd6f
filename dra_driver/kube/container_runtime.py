"""Which container runtimes and kubelets know CDI, by the versions in a Node's
``status.nodeInfo``. docs/user/container-runtimes.md has the sources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

KUBELET_TAKES_CDI_NAMES: Final = (1, 29)
"""The first kubelet that takes CDI names from device plugins without a feature gate (KEP-4009)."""
_VERSION: Final = re.compile(r"([a-z-]+)://v?(\d+)\.(\d+)")


class Cdi(Enum):
    """Whether the runtime adds CDI devices to containers, by its version."""

    NONE = "none"
    CONDITIONAL = "conditional"
    ON_BY_DEFAULT = "on by default"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Runtime:
    """Versions from which on it knows CDI, and does so by default; None if by the version alone
    that cannot be said. `condition` is what must be so between them."""

    knows: tuple[int, int]
    by_default: tuple[int, int] | None
    condition: str = ""


_RUNTIMES: Final[Mapping[str, _Runtime]] = {
    "containerd": _Runtime(
        (1, 7), (2, 0), "its configuration has enable_cdi = true, which is not its default"
    ),
    "cri-o": _Runtime((1, 23), (1, 23)),
    # The version is Docker's, and nothing says which cri-dockerd is between it and the kubelet.
    "docker": _Runtime(
        (25, 0),
        None,
        "cri-dockerd is newer than 0.4.3 and, before Docker 28.2, the daemon has the feature cdi",
    ),
}


def cdi_of(runtime: str) -> Cdi:
    """By a text such as ``containerd://1.7.27``."""
    match = _VERSION.match(runtime)
    known = _RUNTIMES.get(match[1]) if match else None
    if match is None or known is None:
        return Cdi.UNKNOWN
    version = (int(match[2]), int(match[3]))
    if version < known.knows:
        return Cdi.NONE
    is_on = known.by_default is not None and version >= known.by_default
    return Cdi.ON_BY_DEFAULT if is_on else Cdi.CONDITIONAL


def cdi_condition(runtime: str) -> str:
    """On which condition a runtime that is `Cdi.CONDITIONAL` adds CDI devices."""
    return _RUNTIMES[runtime.partition("://")[0]].condition
