"""The device of the table, and how its expressions are written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

DRIVER: Final = "gcu.enflame.com"
DEVICE: Final[dict[str, Any]] = {
    "name": "whole-0000-0d-00-0",
    "attributes": {
        "type": {"string": "whole"},
        "model": {"string": "S60"},
        "memoryMiB": {"int": 42976},
        "healthy": {"bool": True},
        "idle": {"bool": False},
        "firmware": {"version": "1.2.3"},
        "symbols": {"string": "é€😀"},
        "words": {"string": "a,b,c"},
        f"{DRIVER}/card": {"string": "0000:0d:00.0"},
        "resource.kubernetes.io/numaNode": {"int": 1},
    },
    "capacity": {"memory": {"value": "42976Mi"}},
}


@dataclass(frozen=True, slots=True)
class Theme:
    """Expressions that match DEVICE, that do not, and that cannot be evaluated for it.

    GCU, K8S and CAPACITY stand for the device's domains, which `spelled` writes out.
    """

    matches: tuple[str, ...]
    differs: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()


def spelled(expression: str) -> str:
    """The expression with the domains written out."""
    for short, domain in _DOMAINS.items():
        expression = expression.replace(short, domain)
    return expression


_DOMAINS: Final = {
    "GCU": f'device.attributes["{DRIVER}"]',
    "K8S": 'device.attributes["resource.kubernetes.io"]',
    "CAPACITY": f'device.capacity["{DRIVER}"]',
}
