"""Whether a claim was granted the amount that it asks for. Pure.

An amount is in ``capacity.requests``, in opaque configuration (`GcuConfig`), or in both. An
allocator that does not know GcuConfig, such as kube-scheduler, grants the amount in
``capacity.requests``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dra_driver.config.device_config import read_config
from dra_driver.model.claims.amounts import config_applies, requested_amount
from dra_driver.model.claims.capacity_requests import requested
from dra_driver.model.claims.claim import ClaimRef, Result
from dra_driver.model.claims.request_config import RequestConfig
from dra_driver.model.names import CAPACITY_SIZE


def amount_objections(
    claim: Mapping[str, Any], result: Result, ref: ClaimRef
) -> Iterator[tuple[str, str]]:
    """Why the result has another amount than the claim requests, each reason with its remedy.

    Raises InvalidValue for invalid configuration of the claim, Refused for capacities that
    contradict each other.
    """
    devices = (claim.get("spec") or {}).get("devices") or {}
    asked = RequestConfig()
    for entry in devices.get("config") or ():
        if config_applies(entry, result.request):
            asked = (read_config(entry, ref.title) or RequestConfig()).over(asked)
    if not asked.amounts:
        return
    title = f"{ref.title}, request {result.request}"
    capacity = requested(_form(devices, result.request), title)
    for name, amount in asked.amounts.items():
        other, granted = capacity.get(name), result.consumed.get(name)
        if other is not None and requested_amount(other) != amount:
            yield (
                f"its GcuConfig asks for {name} {amount}, and its capacity.requests for {other}",
                "ask for the same amount in both, or leave one of them out",
            )
        elif granted is None or _is_other(name, amount, requested_amount(granted)):
            yield (
                f"its GcuConfig asks for {name} {amount}, and {granted or 'none'} was granted",
                "let gcu-dra-controller allocate it, or ask by capacity.requests, too",
            )


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


def _is_other(name: str, asked: int, granted: int) -> bool:
    """A size is rounded up to the next profile."""
    return granted < asked if name == CAPACITY_SIZE else granted != asked
