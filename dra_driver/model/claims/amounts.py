"""How much of a card one request asks for: ``capacity.requests`` or opaque configuration.

API servers before Kubernetes 1.36 drop ``capacity.requests``, ``consumedCapacity`` and ``shareID``
(feature gate DRAConsumableCapacity, off there), and keep opaque configuration.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from dra_driver.model.mode import Mode
from dra_driver.model.names import CAPACITY_SIZE, CAPACITY_SLICES, DRIVER
from dra_driver.model.quantity import parse_quantity

CAPACITY_OF_MODE: Final[Mapping[Mode, str]] = MappingProxyType(
    {Mode.SHARED: CAPACITY_SLICES, Mode.DRS: CAPACITY_SIZE}
)
"""The capacity that claims share, by mode. A whole card is not shared."""

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_CAPACITY_OF_PREFIX: Final = {mode.value: name for mode, name in CAPACITY_OF_MODE.items()}


def requested_amount(quantity: str) -> int:
    """A quantity of slices or sizes as allocators round it: up to a whole number, at least 1.

    Raises InvalidValue where `quantity` is none.
    """
    return max(1, math.ceil(parse_quantity(quantity)))


def config_applies(entry: Mapping[str, Any], request: str) -> bool:
    """Whether an entry of a claim's ``config`` is for the request. A subrequest of
    ``firstAvailable`` is named as ``request/sub``, or by its ``request``. An entry that names no
    request is for all."""
    named = entry.get("requests")
    return not named or request in named or request.partition("/")[0] in named


def configured_consumption(
    config: Iterable[Mapping[str, Any]], request: str, device: str
) -> Mapping[str, str]:
    """What a result without ``consumedCapacity`` consumes, by its allocation's ``config``.

    Gives the capacity that claims share of such a `device` with its quantity; nothing for a whole
    card, or where no entry has an amount. The last entry that has one holds. Configuration that is
    not understood is passed over: `dra_driver.config.device_config` is what refuses it.
    """
    capacity = _CAPACITY_OF_PREFIX.get(device.partition("-")[0])
    if capacity is None:
        return _NOTHING
    found = _NOTHING
    for entry in config:
        opaque = entry.get("opaque") or {}
        if opaque.get("driver") == DRIVER and config_applies(entry, request):
            amount = (opaque.get("parameters") or {}).get(capacity)
            if type(amount) is int and amount > 0:
                found = {capacity: str(amount)}
    return found
