"""Opaque configuration that a request comes with: its class's, and its claim's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dra_driver.config.device_config import read_config
from dra_driver.model.claim import ClaimRef, Object
from dra_driver.model.packing import PackingChoice


def applies(entry: Mapping[str, Any], request: str) -> bool:
    """Whether an entry of a claim's ``config`` is for the request; one of ``firstAvailable`` is
    meant by ``request/sub`` and by ``request``. An entry that names none is for all."""
    named = entry.get("requests")
    return not named or request in named or request.partition("/")[0] in named


def packing_of(
    ref: ClaimRef, request: str, device_class: Object, devices: Mapping[str, Any]
) -> PackingChoice:
    """What the class and then the claim, whose ``spec.devices`` is given, say for the request: the
    later entry wins. Raises InvalidValue where an entry for this driver is not understood."""
    choice = PackingChoice()
    for entry, owner in _entries(ref, request, device_class, devices):
        said = read_config(entry, owner)
        if said is not None:
            choice = said.over(choice)
    return choice


def _entries(
    ref: ClaimRef, request: str, device_class: Object, devices: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    for entry in device_class["spec"].get("config") or ():
        yield entry, f"the DeviceClass {device_class['metadata']['name']}"
    for entry in devices.get("config") or ():
        if applies(entry, request):
            yield entry, f"claim {ref}"
