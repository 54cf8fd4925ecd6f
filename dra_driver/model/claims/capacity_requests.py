"""The capacities that a request asks for, and the names that a capacity has.

A device's capacity is published by a name without a domain, and is then of the driver's own domain
(resource.k8s.io/v1, QualifiedName). A request may use the full name: kube-scheduler up to 1.37.1
serves no such request, as it compares the two as they are written; 1.38 takes both for the same
(kubernetes#140650, kubernetes#142202), and fails for a request that uses both, whatever the amounts
(1.38.0-beta.0, `resolveCapacityRequests`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dra_driver.model.errors import Refused
from dra_driver.model.names import CAPACITY_SIZE, CAPACITY_SLICES, DRIVER


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
