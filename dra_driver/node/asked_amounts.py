"""Whether a claim was granted what its configuration asks for.

An amount is in ``capacity.requests``, in opaque configuration (`GcuConfig`), or in both. An
allocator that does not know GcuConfig, such as kube-scheduler, grants the amount in
``capacity.requests``, or the smallest one, in any mode that the request's selectors allow. So the
node compares what was granted with the configuration, before it prepares anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dra_driver.config.device_config import ISOLATION_OF_MODE, merged_config
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE, requested, requested_amount
from dra_driver.model.claims.claim import ClaimRef, Result, allocation
from dra_driver.model.claims.measures import Measures, Share
from dra_driver.model.claims.request_config import RequestConfig
from dra_driver.model.mode import Mode
from dra_driver.model.names import CLASS_DRS, CLASS_SHARED
from dra_driver.node.checkpoint.records import PreparedDevice

ShareOf = Callable[[PreparedDevice], Share | None]
"""How much of its card a device is; None while that is unknown. Raises HardwareError if the card is
lost or cannot be read, JournalError if the journal cannot."""

_CLASS: Final = {Mode.SHARED: CLASS_SHARED, Mode.DRS: CLASS_DRS}


def amount_objections(
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


def asked_for(claim: Mapping[str, Any], result: Result, ref: ClaimRef) -> RequestConfig:
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
            forms: list[Mapping[str, Any]] = [
                entry.get("exactly") or {},
                *(entry.get("firstAvailable") or ()),
            ]
            for form in forms:
                if form.get("name", "") == sub:
                    return form
    return {}
