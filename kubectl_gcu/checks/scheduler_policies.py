"""What the chart's policies refuse while kube-scheduler allocates, in Python. Pure.

policy-config-amounts.yaml and policy-admin-access.yaml have the same rules in CEL, and
tests/unit/kubectl_gcu/checks/claims_for_scheduler.py the cases for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from controller.allocator.ownership import forms
from dra_driver.config.device_config import ISOLATION_FIELD
from dra_driver.model.claims.amounts import config_applies
from dra_driver.model.claims.measures import CORES
from dra_driver.model.names import (
    CAPACITY_MEMORY,
    CAPACITY_SIZE,
    CAPACITY_SLICES,
    CLASS_ADMIN,
    CLASS_WHOLE,
    DEVICE_CLASSES,
    DRIVER,
)

Objection = tuple[str, str]
"""What is refused, as a sentence about an object, and the remedy."""

_PARTS: Final = frozenset(DEVICE_CLASSES) - {CLASS_WHOLE}
_AMOUNTS: Final = (CAPACITY_SLICES, CAPACITY_SIZE)
_FIELDS: Final = (*_AMOUNTS, CAPACITY_MEMORY, CORES, ISOLATION_FIELD)
_AGAIN: Final = (
    "Delete it after the switch, with its pod if it was made for one, and create it again: a new "
    "claim gets the same in capacity.requests."
)


def of_claim(devices: Mapping[str, Any]) -> Iterator[Objection]:
    """`devices` is ``spec.devices`` of a claim that is there already: a new one is written as
    kube-scheduler reads it (docs/adr/0038)."""
    for entry in devices.get("config") or ():
        opaque = entry.get("opaque") or {}
        parameters = opaque.get("parameters") or {}
        if opaque.get("driver") != DRIVER:
            continue
        unread = [
            name
            for name in _FIELDS
            if name in parameters and not _is_requested(devices, entry, name, parameters[name])
        ]
        if unread:
            yield (
                f"kube-scheduler does not read {', '.join(unread)} of its GcuConfig",
                _AGAIN,
            )
    yield from of_template(devices)


def of_template(devices: Mapping[str, Any]) -> Iterator[Objection]:
    """`devices` is ``spec.devices`` of the claims that are made from it."""
    for request, form in forms(devices):
        if form.get("adminAccess") and form.get("deviceClassName") in _PARTS:
            yield (
                f"request {request} asks for adminAccess, which is for whole cards",
                f"Request the DeviceClass {CLASS_WHOLE}, or drop adminAccess.",
            )
        if form.get("deviceClassName") == CLASS_ADMIN and not form.get("adminAccess"):
            yield (
                f"request {request} asks for the DeviceClass {CLASS_ADMIN} without adminAccess",
                f"Request the DeviceClass {CLASS_WHOLE}.",
            )


def ignored(devices: Mapping[str, Any]) -> Iterator[Objection]:
    """What no policy refuses, and kube-scheduler does not do."""
    for entry in devices.get("config") or ():
        opaque = entry.get("opaque") or {}
        packing = (opaque.get("parameters") or {}).get("packing")
        if opaque.get("driver") != DRIVER or not isinstance(packing, Mapping):
            continue  # API servers take any parameters
        if "cards" in packing:
            yield (
                f"kube-scheduler ignores packing.cards {packing['cards']} of its GcuConfig",
                "Nothing is to be done if the first card that fits will do.",
            )


def _is_requested(
    devices: Mapping[str, Any], entry: Mapping[str, Any], name: str, value: object
) -> bool:
    """Whether all requests that the entry of ``config`` is for ask by ``capacity.requests`` for the
    amount and no other, or for any where the field is no amount."""
    concerned = [form for request, form in forms(devices) if config_applies(entry, request)]
    if name in _AMOUNTS:
        return all(_amounts(form, name) == {str(value)} for form in concerned)
    return all(any(_amounts(form, each) for each in _AMOUNTS) for form in concerned)


def _amounts(form: Mapping[str, Any], name: str) -> set[str]:
    """By the capacity's short and full name."""
    asked = (form.get("capacity") or {}).get("requests") or {}
    return {text for key in (name, f"{DRIVER}/{name}") if (text := asked.get(key))}
