"""What a claim asks for: ``spec.devices`` of a ResourceClaim, read once and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.allocator.capacity import Amount
from dra_driver.model.claim import ClaimRef, Object
from dra_driver.model.errors import Refused

_MOST_RESULTS = 32  # resource.k8s.io/v1, AllocationResultsMaxSize


@dataclass(frozen=True, slots=True)
class Request:
    """An ``exactly`` request. `selectors` are the class's and then the request's own."""

    name: str
    class_name: str
    count: int
    selectors: tuple[str, ...]
    capacity: Mapping[str, Amount]
    tolerations: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class MatchAttribute:
    """All devices of `requests` (all requests where empty) have the same value of `attribute`."""

    attribute: str
    requests: frozenset[str]

    def applies(self, request: str) -> bool:
        return not self.requests or request in self.requests


@dataclass(frozen=True, slots=True)
class Wanted:
    """A claim that waits for devices."""

    ref: ClaimRef
    claim: Object
    requests: tuple[Request, ...]
    constraints: tuple[MatchAttribute, ...]


def parse_claim(claim: Object, classes: Mapping[str, Object]) -> Wanted:
    """Read the claim. Raises Refused, naming the form, for what is not supported, and
    InvalidValue for what no API server would have stored."""
    ref = ClaimRef.of(claim)
    devices = claim["spec"].get("devices") or {}
    requests = tuple(_request(ref, entry, classes) for entry in devices.get("requests") or ())
    asked = sum(request.count for request in requests)
    if asked > _MOST_RESULTS:
        raise Refused(
            f"claim {ref} asks for {asked} devices, and a claim can hold {_MOST_RESULTS}",
            remedy="split the claim",
        )
    constraints = tuple(_constraint(ref, each) for each in devices.get("constraints") or ())
    return Wanted(ref, claim, requests, constraints)


def _request(ref: ClaimRef, entry: Mapping[str, Any], classes: Mapping[str, Object]) -> Request:
    name = entry["name"]
    exactly = entry.get("exactly")
    if exactly is None:
        form = "firstAvailable" if "firstAvailable" in entry else "an unknown form of request"
        raise _unsupported(ref, name, form)
    mode = exactly.get("allocationMode", "ExactCount")
    if mode != "ExactCount":
        raise _unsupported(ref, name, f"allocationMode {mode}")
    if exactly.get("adminAccess"):
        raise _unsupported(ref, name, "adminAccess")
    class_name = exactly["deviceClassName"]
    found = classes.get(class_name)
    if found is None:
        raise Refused(
            f"claim {ref}, request {name}: the DeviceClass {class_name} does not exist",
            remedy="create it, or name one of kubectl get deviceclasses",
        )
    selectors = [*(found["spec"].get("selectors") or ()), *(exactly.get("selectors") or ())]
    asked = (exactly.get("capacity") or {}).get("requests") or {}
    return Request(
        name=name,
        class_name=class_name,
        count=int(exactly.get("count", 1)),
        selectors=tuple(_expression(ref, name, selector) for selector in selectors),
        capacity={key: Amount.parse(str(value)) for key, value in asked.items()},
        tolerations=tuple(exactly.get("tolerations") or ()),
    )


def _expression(ref: ClaimRef, request: str, selector: Mapping[str, Any]) -> str:
    try:
        return str(selector["cel"]["expression"])
    except KeyError as error:
        raise _unsupported(ref, request, "a selector that is not CEL") from error


def _constraint(ref: ClaimRef, entry: Mapping[str, Any]) -> MatchAttribute:
    if "matchAttribute" in entry:
        return MatchAttribute(entry["matchAttribute"], frozenset(entry.get("requests") or ()))
    form = "distinctAttribute" if "distinctAttribute" in entry else "an unknown constraint"
    raise Refused(f"claim {ref}: {form} is not supported yet", remedy="use matchAttribute, or none")


def _unsupported(ref: ClaimRef, request: str, form: str) -> Refused:
    return Refused(
        f"claim {ref}, request {request}: {form} is not supported yet",
        remedy="ask for an exact count with exactly",
    )
