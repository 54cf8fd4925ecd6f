"""The devices of an allocated claim on this node, or the reason for a refusal.

An amount is in ``capacity.requests``, in opaque configuration (`GcuConfig`), or in both. An
allocator that does not know GcuConfig, such as kube-scheduler, grants the amount in
``capacity.requests``, or the smallest one, in any mode that the request's selectors allow. So the
node compares what was granted with the configuration, before it prepares anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from dra_driver.config.device_config import ISOLATION_OF_MODE, merged_config, read_config
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE, requested, requested_amount
from dra_driver.model.claims.claim import (
    ClaimRef,
    Result,
    allocation,
    made_for,
    pod_claim_name,
    results,
)
from dra_driver.model.claims.measures import Measures, Share
from dra_driver.model.claims.request_config import RequestConfig
from dra_driver.model.devices.device import is_admin_device
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import CLASS_DRS, CLASS_SHARED, CLASS_WHOLE, DRIVER
from dra_driver.node.checkpoint.records import MetadataRef, PreparedDevice

ShareOf = Callable[[PreparedDevice], Share | None]
"""How much of its card a device is; None while that is unknown. Raises HardwareError if the card is
lost or cannot be read, JournalError if the journal cannot."""

_CLASS: Final = {Mode.SHARED: CLASS_SHARED, Mode.DRS: CLASS_DRS}


def planned_devices(
    claim: Mapping[str, Any], ref: ClaimRef, *, pool: str, share: ShareOf
) -> tuple[PreparedDevice, ...]:
    """The claim's devices here, in the order of its results; `visible_cards` is still empty.

    `claim` is the API object, `ref` the kubelet's reference to it, `pool` this node's pool.
    `share` is called for devices whose amount is asked for by memory or compute. Raises Refused
    with the reason, InvalidValue for a device name that this driver does not publish or for invalid
    configuration, and what `share` raises.
    """
    actual = ClaimRef.of(claim)
    if actual.uid != ref.uid:
        raise Refused(
            f"claim {ref} with UID {ref.uid} is gone; a claim of the same name has UID "
            f"{actual.uid}",
            remedy="delete the pod that was made for the former claim",
        )
    found = allocation(claim)
    if found is None:
        raise Refused(
            f"claim {ref} is not allocated", remedy="wait until a device is allocated to it"
        )
    ours = results(claim)
    if not ours:
        raise Refused(f"claim {ref} was allocated nothing of {DRIVER}")
    for entry in found.get("devices", {}).get("config", ()):
        of_class = "the DeviceClass of " if entry.get("source") == "FromClass" else ""
        read_config(entry, f"{of_class}claim {ref}")  # no mistake goes unnoticed, used here or not
    pod = made_for(claim)
    devices = []
    for result in ours:
        device, asked = PreparedDevice.of(result), _asked_for(claim, result, ref)
        problems = chain(
            _objections(device, result, pool),
            _amount_objections(claim, result, device, ref, share, asked=asked),
        )
        for problem, remedy in problems:
            where = f"claim {ref}, request {result.request!r}, device {result.device}"
            raise Refused(f"{where}: {problem}", remedy=remedy)
        metadata = None
        if asked.device_metadata:
            metadata = MetadataRef(result.request, pod_claim_name(claim))
        devices.append(replace(device, made_for=pod, metadata=metadata))
    _check_names(devices, ref)
    return tuple(devices)


def _check_names(devices: Iterable[PreparedDevice], ref: ClaimRef) -> None:
    """Without share IDs a request can have one share of a device: the CDI name has the request."""
    seen: set[str] = set()
    for device in devices:
        if device.mode is not Mode.WHOLE and device.share_id is None and device.cdi_name in seen:
            raise Refused(
                f"claim {ref} was allocated device {device.device_name} twice for request "
                f"{device.request!r}, without share IDs",
                remedy=ref.renewal,
            )
        seen.add(device.cdi_name)


def _objections(device: PreparedDevice, result: Result, pool: str) -> Iterator[tuple[str, str]]:
    if result.pool != pool:
        yield f"it is in pool {result.pool}, and this node has {pool}", "run the pod there"
    if is_admin_device(result.device) and not result.admin_access:
        yield (
            "it is for adminAccess alone, as others use the card meanwhile",
            f"request the DeviceClass {CLASS_WHOLE}, or adminAccess",
        )
    if result.admin_access and device.mode is not Mode.WHOLE:
        yield (
            f"adminAccess is for whole cards, and this is a {device.mode} device",
            "request a whole card, or drop adminAccess",
        )
    if device.mode is not Mode.WHOLE and device.amount is None:
        yield (
            "the allocation does not say how much of the device was granted",
            "delete the claim; before Kubernetes 1.36 gcu-dra-controller alone can allocate it",
        )


def _amount_objections(
    claim: Mapping[str, Any],
    result: Result,
    device: PreparedDevice,
    ref: ClaimRef,
    share_of: ShareOf,
    *,
    asked: RequestConfig,
) -> Iterator[tuple[str, str]]:
    """Why the result is less than is `asked` for, or of another isolation, each reason with its
    remedy. `device` is the result's, and has an amount if it is not a whole card.

    Raises Refused for capacities that contradict each other, and what `share_of` raises.
    """
    yield from _other_amount(claim, result, ref, asked.amounts)
    if asked.mode is not None and device.mode is not asked.mode:
        yield (
            (
                f"its GcuConfig asks for isolation {ISOLATION_OF_MODE[asked.mode]}, and a "
                f"{device.mode} device was granted"
            ),
            f"request the class {_CLASS[asked.mode]}, or let gcu-dra-controller allocate it",
        )
    if asked.measures is not None:
        yield from _less(asked.measures, device, share_of(device))


def _asked_for(claim: Mapping[str, Any], result: Result, ref: ClaimRef) -> RequestConfig:
    """What the DeviceClass, as the allocator copied it, and then the claim ask for the result's
    request. Raises InvalidValue for invalid configuration of either."""
    copied = ((allocation(claim) or {}).get("devices") or {}).get("config") or ()
    of_class = [entry for entry in copied if entry.get("source") == "FromClass"]
    entries = [*of_class, *(_devices(claim).get("config") or ())]
    return merged_config(entries, result.request, ref.title)


def _other_amount(
    claim: Mapping[str, Any], result: Result, ref: ClaimRef, asked: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Of `asked`, the amounts by the names of their capacities."""
    if not asked:
        return
    title = f"{ref.title}, request {result.request}"
    capacity = requested(_form(_devices(claim), result.request), title)
    for name, amount in asked.items():
        other, granted = capacity.get(name), result.consumed.get(name)
        if other is not None and requested_amount(other) != amount:
            yield (
                f"its GcuConfig asks for {name} {amount}, and its capacity.requests for {other}",
                "ask for the same amount in both, or leave one of them out",
            )
        elif granted is None or requested_amount(granted) < amount:
            yield (
                f"its GcuConfig asks for {name} {amount}, and {granted or 'none'} was granted",
                "let gcu-dra-controller allocate it, or ask by capacity.requests, too",
            )


def _less(
    measures: Measures, device: PreparedDevice, share: Share | None
) -> Iterator[tuple[str, str]]:
    asked = _listed(measures.texts)
    name = CAPACITY_OF_MODE.get(device.mode)
    granted = "a whole card" if name is None else f"{name} {device.amount}"
    if share is None:
        yield (
            f"its GcuConfig asks for {asked}, and what {granted} of this card is, is not known",
            "the agent reads the profiles of its cards, and the kubelet retries",
        )
    elif missing := measures.missing(share):
        yield (
            (
                f"its GcuConfig asks for {asked}, and {granted} was granted, which has "
                f"{_listed(missing)}"
            ),
            (
                "let gcu-dra-controller allocate it, or ask for slices or size by "
                "capacity.requests in place of it"
            ),
        )


def _listed(texts: Mapping[str, str]) -> str:
    return " and ".join(f"{name} {text}" for name, text in texts.items())


def _devices(claim: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (claim.get("spec") or {}).get("devices") or {}
    return found


def _form(devices: Mapping[str, Any], request: str) -> Mapping[str, Any]:
    main, _, sub = request.partition("/")
    for entry in devices.get("requests") or ():
        if entry["name"] == main:
            forms = [entry.get("exactly") or {}, *(entry.get("firstAvailable") or ())]
            return next((form for form in forms if form.get("name", "") == sub), {})
    return {}
