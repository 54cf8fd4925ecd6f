"""What the chart's policies refuse while kube-scheduler allocates, in Python. Pure.

policy-config-amounts.yaml and policy-legacy-resources.yaml have the same rules in CEL, and
tests/unit/kubectl_gcu/checks/claims_for_scheduler.py the cases for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_driver.asks.limits import MEASURES, limit_names
from dra_driver.asks.templates import devices_named
from dra_driver.model.claims.amounts import config_applies
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.measures import CORES
from dra_driver.model.names import (
    CAPACITY_MEMORY,
    CAPACITY_SIZE,
    CAPACITY_SLICES,
    CLASS_WHOLE,
    DEVICE_CLASSES,
    DRIVER,
    RESOURCE_DRS,
    RESOURCE_SHARED,
)

Objection = tuple[str, str]
"""What is refused, as a sentence about an object, and the remedy."""

_PARTS: Final = frozenset(DEVICE_CLASSES) - {CLASS_WHOLE}
_UNTRANSLATED: Final = (CAPACITY_MEMORY, CORES, "isolation")


def of_claim(devices: Mapping[str, Any]) -> Iterator[Objection]:
    """`devices` is ``spec.devices`` of a claim."""
    for entry in devices.get("config") or ():
        opaque = entry.get("opaque") or {}
        parameters = opaque.get("parameters") or {}
        if opaque.get("driver") != DRIVER:
            continue
        for name in (CAPACITY_SLICES, CAPACITY_SIZE):
            if name in parameters and not _is_requested(devices, entry, name, parameters[name]):
                yield (
                    f"kube-scheduler does not read {name} {parameters[name]} of its GcuConfig",
                    f"Request the same {name} by capacity.requests, or leave it out of GcuConfig.",
                )
        if untranslated := [name for name in _UNTRANSLATED if name in parameters]:
            yield (
                f"kube-scheduler cannot translate {', '.join(untranslated)} of its GcuConfig",
                "Request slices or size by capacity.requests.",
            )
    for request, form in _forms(devices):
        if form.get("adminAccess") and form.get("deviceClassName") in _PARTS:
            yield (
                f"request {request} asks for adminAccess, which is for whole cards",
                f"Request the DeviceClass {CLASS_WHOLE}, or drop adminAccess.",
            )


def of_pod(pod: Object) -> Iterator[Objection]:
    """By its limits, or by the claim template that they became (docs/adr/0015)."""
    templates = (
        str(each.get("resourceClaimTemplateName") or "")
        for each in pod["spec"].get("resourceClaims") or ()
    )
    became = any(any(of_claim(devices_named(name) or {})) for name in templates)
    if became or limit_names(pod, MEASURES.__contains__):
        yield (
            f"kube-scheduler cannot translate its limits {' and '.join(MEASURES)}",
            f"Use {RESOURCE_DRS} or {RESOURCE_SHARED}.",
        )


def ignored(devices: Mapping[str, Any]) -> Iterator[Objection]:
    """What no policy refuses, and kube-scheduler does not do."""
    for entry in devices.get("config") or ():
        opaque = entry.get("opaque") or {}
        packing = (opaque.get("parameters") or {}).get("packing") or {}
        if opaque.get("driver") == DRIVER and "cards" in packing:
            yield (
                f"kube-scheduler ignores packing.cards {packing['cards']} of its GcuConfig",
                "Nothing is to be done if the first card that fits will do.",
            )


def _is_requested(
    devices: Mapping[str, Any], entry: Mapping[str, Any], name: str, amount: object
) -> bool:
    """Whether all requests that the entry of ``config`` is for ask for the amount and no other."""
    return all(
        _amounts(form, name) == {str(amount)}
        for request, form in _forms(devices)
        if config_applies(entry, request)
    )


def _amounts(form: Mapping[str, Any], name: str) -> set[str]:
    """By the capacity's short and full name."""
    asked = (form.get("capacity") or {}).get("requests") or {}
    return {text for key in (name, f"{DRIVER}/{name}") if (text := asked.get(key))}


def _forms(devices: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """``exactly`` by its request, and alternatives by ``request/subrequest``."""
    for request in devices.get("requests") or ():
        if request.get("exactly"):
            yield request["name"], request["exactly"]
        for sub in request.get("firstAvailable") or ():
            yield f"{request['name']}/{sub['name']}", sub
