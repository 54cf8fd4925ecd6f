"""Which fields of a claim the allocator honours, and what becomes of all others.

A newer API server may keep a field that this allocator does not know. Such a field may restrict
what may be allocated, and an allocation made without it could be wrong. So it is refused by its
name, unless the administrator says that it may be ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.errors import Refused

Part = tuple[str, Mapping[str, Any], frozenset[str]]
"""Yields each part of the claim: its name for people, the part, and its honoured fields."""

# The fields of resource.k8s.io/v1 in Kubernetes 1.37.1, without `derivedAttributes` of a request,
# which is alpha there. `config` is passed on to the driver, whatever it holds.
_SPEC: Final = frozenset({"devices"})
_DEVICES: Final = frozenset({"requests", "constraints", "config"})
_REQUEST: Final = frozenset({"name", "exactly", "firstAvailable"})
_EXACTLY: Final = frozenset(
    {
        "deviceClassName",
        "selectors",
        "allocationMode",
        "count",
        "adminAccess",
        "tolerations",
        "capacity",
    }
)
_SUBREQUEST: Final = _EXACTLY | {"name"}
_SELECTOR: Final = frozenset({"cel"})
_CEL: Final = frozenset({"expression"})
_CAPACITY: Final = frozenset({"requests"})
_TOLERATION: Final = frozenset({"key", "operator", "value", "effect", "tolerationSeconds"})
_KINDS_OF_CONSTRAINT: Final = frozenset({"matchAttribute", "distinctAttribute"})
_CONSTRAINT: Final = _KINDS_OF_CONSTRAINT | {"requests"}


def check_fields(claim: Object, ignored: Collection[str]) -> None:
    """Raises Refused for a field that is neither honoured nor `ignored`. A request of an unknown
    form is left to its reader."""
    for where, part, honoured in _parts(claim):
        for field in sorted(part.keys() - honoured):
            if field not in ignored and part[field] is not None:
                raise Refused(
                    f"{where}: the field {field} is not supported",
                    remedy="create the claim again without it; or, to ignore it in the whole "
                    f"cluster, add {field} to controller.ignoredClaimFields of the chart",
                )


def is_ignored_selector(selector: Mapping[str, Any], ignored: Collection[str]) -> bool:
    """Whether it has nothing that is honoured, and a field that is `ignored`."""
    return _is_ignored(selector, _SELECTOR, ignored)


def is_ignored_constraint(constraint: Mapping[str, Any], ignored: Collection[str]) -> bool:
    """Whether it has nothing that is honoured, and a field that is `ignored`."""
    return _is_ignored(constraint, _KINDS_OF_CONSTRAINT, ignored)


def _is_ignored(
    part: Mapping[str, Any], honoured: frozenset[str], ignored: Collection[str]
) -> bool:
    return part.keys().isdisjoint(honoured) and not part.keys().isdisjoint(ignored)


def _parts(claim: Object) -> Iterator[Part]:
    title = f"claim {ClaimRef.of(claim)}"
    devices = claim["spec"].get("devices") or {}
    yield title, claim["spec"], _SPEC
    yield title, devices, _DEVICES
    for request in devices.get("requests") or ():
        where = f"{title}, request {request['name']}"
        exactly, subs = request.get("exactly"), request.get("firstAvailable") or ()
        if exactly or subs:
            yield where, request, _REQUEST
        if exactly:
            yield from _parts_of_form(where, exactly, _EXACTLY)
        for sub in subs:
            yield from _parts_of_form(f"{where}/{sub['name']}", sub, _SUBREQUEST)
    for constraint in devices.get("constraints") or ():
        yield f"{title}, a constraint", constraint, _CONSTRAINT


def _parts_of_form(where: str, form: Mapping[str, Any], honoured: frozenset[str]) -> Iterator[Part]:
    yield where, form, honoured
    yield f"{where}, capacity", form.get("capacity") or {}, _CAPACITY
    for selector in form.get("selectors") or ():
        yield f"{where}, a selector", selector, _SELECTOR
        yield f"{where}, a selector", selector.get("cel") or {}, _CEL
    for toleration in form.get("tolerations") or ():
        yield f"{where}, a toleration", toleration, _TOLERATION
