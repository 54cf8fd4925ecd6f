"""Requests with administrative access, as kube-scheduler serves them beside other claims
(docs/adr/0040). Pure."""

from __future__ import annotations

from typing import Any, Final

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_ADMIN, CLASS_WHOLE, TAINT_ADMINISTRATORS

_TOLERATION: Final = {"key": TAINT_ADMINISTRATORS, "operator": "Exists"}


def for_administrators(devices: Object, stored: Object | None) -> Object:
    """``spec.devices`` of a claim, where requests for whole cards with ``adminAccess`` are for the
    devices that only administrators get. `stored` is the claim before an update, None if it is new:
    a request that is stored otherwise stays as it is, as no spec can be changed."""
    if not devices.get("requests"):
        return devices
    written = None if stored is None else _written(stored)
    requests = [
        {**entry, "exactly": _form(entry["exactly"])}
        if _asks(entry) and (written is None or entry["name"] in written)
        else entry
        for entry in devices["requests"]
    ]
    return {**devices, "requests": requests}


def _written(claim: Object) -> frozenset[str]:
    """The names of the requests that were written for administrators."""
    requests = (claim["spec"].get("devices") or {}).get("requests") or ()
    return frozenset(
        entry["name"]
        for entry in requests
        if _asks(entry) and _form(entry["exactly"]) == entry["exactly"]
    )


def _asks(entry: Object) -> bool:
    form = entry.get("exactly") or {}
    return bool(form.get("adminAccess")) and form["deviceClassName"] in {CLASS_WHOLE, CLASS_ADMIN}


def _form(form: Object) -> Object:
    tolerations: list[Any] = list(form.get("tolerations") or ())
    if _TOLERATION not in tolerations:
        tolerations.append(_TOLERATION)
    return {**form, "deviceClassName": CLASS_ADMIN, "tolerations": tolerations}
