"""The allocation as the API writes it: exactly what upstream's own allocator would have written
(k8s.io/dynamic-resource-allocation, structured/internal/incubating, 1.36.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller.allocator.capacity import Amount
from controller.allocator.claim_request import ClaimRequest, ExactRequest
from controller.allocator.device import Device
from dra_driver.config.device_config import amount_entry
from dra_driver.model.claims.amounts import config_applies
from dra_driver.model.claims.claim import Object, ReadOnlyObject
from dra_driver.model.errors import Refused

_COPIED = ("bindingConditions", "bindingFailureConditions")


@dataclass(frozen=True, slots=True)
class DeviceAssignment:
    """One device for one request; `consumed` is None unless the device is shared."""

    request: ExactRequest
    device: Device
    consumed: Mapping[str, Amount] | None


DeviceAssignments = tuple[tuple[DeviceAssignment, ...], ...]
"""Of each claim, in the order of its requests."""


def allocation_status(
    wanted: ClaimRequest,
    grants: Sequence[DeviceAssignment],
    node: str,
    classes: Mapping[str, ReadOnlyObject],
    *,
    timestamp: str,
    new_share_id: Callable[[], str],
) -> Object:
    """The claim's ``status.allocation``. `timestamp` is RFC 3339; a new share id is a UUID."""
    devices: Object = {"results": [_result(grant, new_share_id) for grant in grants]}
    chosen = list({grant.request.name: grant.request for grant in grants}.values())
    config = [
        *_class_config(chosen, classes),
        *_claim_config(wanted, chosen),
        *_amount_config(granted_amounts(grants)),
    ]
    if config:
        devices["config"] = config
    return {
        "devices": devices,
        "allocationTimestamp": timestamp,
        "nodeSelector": _node_selector(node),
    }


def granted_amounts(grants: Sequence[DeviceAssignment]) -> Mapping[str, Mapping[str, int]]:
    """By request what each of its devices gives, for devices whose shares the API server drops.

    Raises Refused if a request gets different amounts of several devices: its configuration can
    name only one of them.
    """
    amounts: dict[str, Mapping[str, int]] = {}
    for grant in grants:
        if not grant.consumed or grant.device.kind.keeps_shares:
            continue
        given = {name: amount.units for name, amount in grant.consumed.items()}
        if amounts.setdefault(grant.request.name, given) != given:
            raise Refused(
                f"request {grant.request.name} would get {_words(given)} of one card and "
                f"{_words(amounts[grant.request.name])} of another, and this API server keeps one "
                "amount for a request",
                remedy="ask for a size that all of the node's cards have, or in several requests",
            )
    return amounts


def _words(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())


def _result(grant: DeviceAssignment, new_share_id: Callable[[], str]) -> Object:
    result: Object = {
        "request": grant.request.name,
        "driver": grant.device.driver,
        "pool": grant.device.id.pool,
        "device": grant.device.id.name,
    }
    if grant.request.device_request.admin_access:
        result["adminAccess"] = True
    if grant.request.tolerations:
        result["tolerations"] = list(grant.request.tolerations)
    if grant.consumed is not None:
        result["shareID"] = new_share_id()
        if grant.consumed:
            result["consumedCapacity"] = {
                name: amount.text for name, amount in grant.consumed.items()
            }
    conditions = grant.device.kind.conditions
    result |= {key: conditions[key] for key in _COPIED if key in conditions}
    return result


def _class_config(
    chosen: Sequence[ExactRequest], classes: Mapping[str, ReadOnlyObject]
) -> Iterator[Object]:
    """A class's configuration is written once, for all requests of that class."""
    by_class: defaultdict[str, list[str]] = defaultdict(list)
    for request in chosen:
        by_class[request.class_name].append(request.name)
    for class_name, requests in by_class.items():
        for entry in classes[class_name]["spec"].get("config") or ():
            yield {"source": "FromClass", "requests": list(requests), **entry}


def _claim_config(wanted: ClaimRequest, chosen: Sequence[ExactRequest]) -> Iterator[Object]:
    """The claim's configuration. An entry for several requests is written once for each of them, as
    by upstream's allocator. One for a chosen subrequest names it or its request."""
    for entry in (wanted.claim["spec"].get("devices") or {}).get("config") or ():
        times = 1
        if entry.get("requests"):
            times = sum(config_applies(entry, each.name) for each in chosen)
        for _ in range(times):
            yield {"source": "FromClaim", **entry}


def _amount_config(amounts: Mapping[str, Mapping[str, int]]) -> Iterator[Object]:
    """What was granted, if the server drops it from the results: the last entry that has an
    amount holds. Its source is the claim, as an allocation knows only that and the class."""
    for request, given in amounts.items():
        yield {"source": "FromClaim", **amount_entry([request], given)}


def _node_selector(node: str) -> Object:
    """The one node that the pool of each device belongs to."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    return {"nodeSelectorTerms": [{"matchFields": fields}]}
