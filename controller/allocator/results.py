"""The allocation as the API writes it: exactly what upstream's own allocator would have written
(k8s.io/dynamic-resource-allocation, structured/internal/incubating, 1.36.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from controller.allocator.request import Wanted
from controller.allocator.search import Grant
from dra_driver.model.claim import Object
from dra_driver.model.names import DRIVER


def allocation_status(
    wanted: Wanted,
    grants: Sequence[Grant],
    node: str,
    classes: Mapping[str, Object],
    *,
    timestamp: str,
    new_share_id: Callable[[], str],
) -> Object:
    """The claim's ``status.allocation``. `timestamp` is RFC 3339; a new share id is a UUID."""
    devices: Object = {"results": [_result(grant, new_share_id) for grant in grants]}
    config = [*_class_config(wanted, classes), *_claim_config(wanted)]
    if config:
        devices["config"] = config
    return {
        "devices": devices,
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            ]
        },
        "allocationTimestamp": timestamp,
    }


def _result(grant: Grant, new_share_id: Callable[[], str]) -> Object:
    result: Object = {
        "request": grant.request.name,
        "driver": DRIVER,
        "pool": grant.device.id.pool,
        "device": grant.device.id.name,
    }
    if grant.request.tolerations:
        result["tolerations"] = list(grant.request.tolerations)
    if grant.consumed is not None:
        result["shareID"] = new_share_id()
        if grant.consumed:
            result["consumedCapacity"] = {
                name: amount.text for name, amount in grant.consumed.items()
            }
    return result


def _class_config(wanted: Wanted, classes: Mapping[str, Object]) -> list[Object]:
    """A class's configuration stands once, for all requests of that class."""
    by_class: dict[str, list[Object]] = {}
    for request in wanted.requests:
        entries = by_class.get(request.class_name)
        if entries is None:
            given = classes[request.class_name]["spec"].get("config") or ()
            by_class[request.class_name] = [
                {"source": "FromClass", "requests": [request.name], **entry} for entry in given
            ]
        else:
            for entry in entries:
                entry["requests"].append(request.name)
    return [entry for entries in by_class.values() for entry in entries]


def _claim_config(wanted: Wanted) -> Iterator[Object]:
    """The claim's configuration; one that names several requests stands once for each of them,
    because upstream's allocator writes it so."""
    for entry in (wanted.claim["spec"].get("devices") or {}).get("config") or ():
        copied: dict[str, Any] = {"source": "FromClaim", **entry}
        named = entry.get("requests") or ()
        times = sum(request.name in named for request in wanted.requests) if named else 1
        yield from (dict(copied) for _ in range(times))
