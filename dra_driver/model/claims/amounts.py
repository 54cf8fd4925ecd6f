"""How much of a card one request asks for: ``capacity.requests`` or opaque configuration.

API servers before Kubernetes 1.36 drop ``capacity.requests``, ``consumedCapacity`` and ``shareID``
(feature gate DRAConsumableCapacity, off there), and keep opaque configuration.

A device's capacity is published by a name without a domain, and is then of the driver's own domain
(resource.k8s.io/v1, QualifiedName). A request may use the full name: kube-scheduler up to 1.37.1
serves no such request, as it compares the two as they are written; 1.38 takes both for the same
(kubernetes#140650, kubernetes#142202), and fails for a request that uses both, whatever the amounts
(1.38.0-beta.0, `resolveCapacityRequests`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import CAPACITY_SIZE, CAPACITY_SLICES, DRIVER
from dra_driver.model.quantity import parse_quantity

CAPACITY_OF_MODE: Final[Mapping[str, str]] = {
    Mode.SHARED: CAPACITY_SLICES,
    Mode.DRS: CAPACITY_SIZE,
}
"""The capacity that claims share, by mode. A whole card is not shared."""


def capacity_name(name: str) -> str:
    """The name without the driver's own domain; any other name as it is. The API takes names with
    two slashes, too (1.37.1, `validateQualifiedName`): they are of no driver."""
    domain, _, short = name.partition("/")
    return short if domain == DRIVER and short and "/" not in short else name


def by_short_name(amounts: Mapping[str, str]) -> Mapping[str, str]:
    """The amounts, such as those of ``consumedCapacity``, by `capacity_name`."""
    if not any("/" in name for name in amounts):
        return amounts
    return {capacity_name(name): amount for name, amount in amounts.items()}


def requested(form: Mapping[str, Any], title: str) -> dict[str, str]:
    """What ``exactly``, or a subrequest, asks for by ``capacity.requests``, as written, by
    `capacity_name`. `title` names the request.

    Raises Refused for a capacity that no device of this driver can have, and for one that is asked
    for by both of its names.
    """
    asked = (form.get("capacity") or {}).get("requests") or {}
    found: dict[str, str] = {}
    for written in sorted(asked, key=lambda name: (name.count("/"), name)):  # short names first
        name, amount = capacity_name(written), str(asked[written])
        if "/" in name:
            raise Refused(
                f"{title}: no device of {DRIVER} has the capacity {name}",
                remedy=f"ask for {CAPACITY_SLICES} or {CAPACITY_SIZE}, or leave it out",
            )
        if name in found:
            raise Refused(
                f"{title}: it asks for {name} {found[name]} and for {written} {amount}, which are "
                "one capacity",
                remedy="leave one of them out",
            )
        found[name] = amount
    return found


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
    config: Iterable[Mapping[str, Any]], result: Mapping[str, Any]
) -> Mapping[str, str]:
    """What a result consumes by its allocation's ``config``, where the server dropped its
    ``consumedCapacity``.

    Gives the capacity that claims share of such a device with its quantity; nothing for a whole
    card, another driver's device, or where no entry has an amount. The last entry that has one
    holds. Configuration that is not understood is passed over: `dra_driver.config.device_config` is
    what refuses it.
    """
    found: Mapping[str, str] = {}
    capacity = CAPACITY_OF_MODE.get(result["device"].partition("-")[0])
    if capacity is None or result["driver"] != DRIVER:
        return found
    for entry in config:
        opaque = entry.get("opaque") or {}
        if opaque.get("driver") == DRIVER and config_applies(entry, result["request"]):
            amount = (opaque.get("parameters") or {}).get(capacity)
            if type(amount) is int and amount > 0:
                found = {capacity: str(amount)}
    return found
