"""Which container runtimes and kubelets know CDI, by the versions in a Node's
``status.nodeInfo``."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

KUBELET_TAKES_CDI_NAMES: Final = (1, 29)
"""The first kubelet that takes CDI names from device plugins without a feature gate (KEP-4009)."""
_VERSION: Final = re.compile(r"(containerd|cri-o)://v?(\d+)\.(\d+)")
_FIRST_WITH_CDI: Final = {"containerd": (1, 7), "cri-o": (1, 23)}
_FIRST_WITH_CDI_ON: Final = {"containerd": (2, 0), "cri-o": (1, 23)}


class Cdi(Enum):
    """Whether the runtime adds CDI devices to containers, by its version. containerd 1.7 does where
    its configuration has ``enable_cdi = true``; later ones do unless it is switched off."""

    NONE = "none"
    OFF_BY_DEFAULT = "off by default"
    ON_BY_DEFAULT = "on by default"
    UNKNOWN = "unknown"


def cdi_of(runtime: str) -> Cdi:
    """By a text such as ``containerd://1.7.27``."""
    match = _VERSION.match(runtime)
    if match is None:
        return Cdi.UNKNOWN
    name, version = match[1], (int(match[2]), int(match[3]))
    if version < _FIRST_WITH_CDI[name]:
        return Cdi.NONE
    return Cdi.ON_BY_DEFAULT if version >= _FIRST_WITH_CDI_ON[name] else Cdi.OFF_BY_DEFAULT
