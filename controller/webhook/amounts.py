"""Moves ``capacity.requests`` of claims and claim templates into opaque configuration. Pure.

API servers before Kubernetes 1.36 drop ``capacity`` after admission, on create and on update, and a
stored claim does not show that it asked for more than the default.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from controller.webhook.review import Operation
from dra_driver.config.device_config import amount_entry, merged_config
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE, requested, requested_amount
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused

_Form = tuple[str, str, Mapping[str, Any]]  # name, JSON pointer, and the form of a request


def move_amounts(obj: Object, classes: Collection[str]) -> list[Operation]:
    """The patch for a ResourceClaim or ResourceClaimTemplate (resource.k8s.io/v1): requests for
    `classes` ask for the same amounts by GcuConfig. Nothing where that is done already.

    Raises Refused where a request asks for another capacity, for one by two names, or for what
    the API server drops and nothing replaces, and InvalidValue for a quantity or a configuration
    that is not understood.
    """
    path, spec = "/spec", obj.get("spec") or {}
    if "spec" in spec:  # a template has the spec of its claims one level down
        path, spec = "/spec/spec", spec["spec"]
    devices = spec.get("devices") or {}
    title = f"{obj['kind']} {(obj.get('metadata') or {}).get('name') or 'without a name yet'}"
    moved: list[Operation] = []
    added: dict[tuple[tuple[str, int], ...], list[str]] = {}
    ours = [each for each in _forms(devices) if each[2].get("deviceClassName") in classes]
    _check_kept(title, devices, ours)
    for name, pointer, form in ours:
        asked = requested(form, f"{title}, request {name}")
        if not asked:
            continue
        amounts = {each: _amount(title, name, each, asked[each]) for each in sorted(asked)}
        configured = merged_config(devices.get("config") or (), name, title).amounts
        _check(title, name, amounts, configured)
        moved.append({"op": "remove", "path": f"{path}/devices{pointer}/capacity"})
        new = tuple(each for each in amounts.items() if each[0] not in configured)
        if new:
            added.setdefault(new, []).append(name)
    entries = [amount_entry(requests, dict(amounts)) for amounts, requests in added.items()]
    return [*moved, *_additions(f"{path}/devices/config", devices.get("config") or (), entries)]


def _check_kept(title: str, devices: Mapping[str, Any], ours: Sequence[_Form]) -> None:
    """Raises Refused for tolerations and `distinctAttribute`: the stored claim would not show that
    they were asked for."""
    for name, _, form in ours:
        if form.get("tolerations"):
            raise Refused(
                f"{title}, request {name}: API servers before Kubernetes 1.36 drop tolerations of "
                "device taints",
                remedy="remove them; a tainted card can be requested from 1.36 on",
            )
    for constraint in devices.get("constraints") or ():
        concerned = {*(constraint.get("requests") or ())}
        names = {part for name, _, _ in ours for part in (name, name.partition("/")[0])}
        if constraint.get("distinctAttribute") and ours and (not concerned or concerned & names):
            raise Refused(
                f"{title}: API servers before Kubernetes 1.36 drop distinctAttribute",
                remedy="remove it, or use matchAttribute",
            )


def _forms(devices: Mapping[str, Any]) -> Iterator[_Form]:
    for i, request in enumerate(devices.get("requests") or ()):
        if request.get("exactly"):
            yield request["name"], f"/requests/{i}/exactly", request["exactly"]
        for j, sub in enumerate(request.get("firstAvailable") or ()):
            name = f"{request['name']}/{sub['name']}"
            yield name, f"/requests/{i}/firstAvailable/{j}", sub


def _amount(title: str, request: str, capacity: str, quantity: str) -> int:
    if capacity not in CAPACITY_OF_MODE.values():
        raise Refused(
            f"{title}, request {request}: the capacity {capacity} cannot be requested here, as "
            "API servers before Kubernetes 1.36 drop it",
            remedy="select devices by their attributes instead",
        )
    return requested_amount(quantity)


def _check(
    title: str, request: str, amounts: Mapping[str, int], configured: Mapping[str, int]
) -> None:
    for name, amount in amounts.items():
        if configured.get(name, amount) != amount:
            raise Refused(
                f"{title}, request {request}: its GcuConfig asks for {name} {configured[name]}, "
                f"and its capacity.requests for {amount}",
                remedy="ask for the same amount in both, or leave one of them out",
            )


def _additions(
    path: str, present: Sequence[object], entries: Sequence[Object]
) -> Iterator[Operation]:
    if entries and not present:
        yield {"op": "add", "path": path, "value": entries}
    else:
        yield from ({"op": "add", "path": f"{path}/-", "value": each} for each in entries)
