"""What a claim asks for: ``spec.devices`` of a ResourceClaim, read once and checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controller.allocator.device_request import Constraint, DeviceRequest, demand
from dra_driver.config.device_config import read_config
from dra_driver.model.amounts import config_applies, requested_amount
from dra_driver.model.claim import ClaimRef, Object
from dra_driver.model.errors import Refused
from dra_driver.model.request_config import RequestConfig

MOST_RESULTS = 32  # resource.k8s.io/v1, AllocationResultsMaxSize
_MOST_CONFIGS = 64  # 2 × DeviceConfigMaxSize: the API's limit for an allocation


@dataclass(frozen=True, slots=True)
class ExactRequest:
    """An ``exactly`` request or one subrequest of ``firstAvailable``; the name of the latter is
    ``request/sub``. `tolerations` are handed on as they are."""

    name: str
    class_name: str
    demand: DeviceRequest
    tolerations: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One of `alternatives` is to be served, the first that can be."""

    name: str
    alternatives: tuple[ExactRequest, ...]


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A claim that waits for devices."""

    ref: ClaimRef
    claim: Object
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for claims that ask the same, as those made from one template do."""
        return (
            tuple(
                (sub.name, sub.class_name, sub.demand)
                for each in self.requests
                for sub in each.alternatives
            ),
            self.constraints,
        )


def parse_claim(claim: Object, classes: Mapping[str, Object]) -> ClaimRequest:
    """Read the claim. Raises Refused, naming the form, for what is not supported, and
    InvalidValue for what no API server would have stored."""
    ref = ClaimRef.of(claim)
    devices = claim["spec"].get("devices") or {}
    wanted = ClaimRequest(
        ref,
        claim,
        tuple(_request(ref, entry, devices, classes) for entry in devices.get("requests") or ()),
        tuple(_constraint(ref, entry) for entry in devices.get("constraints") or ()),
    )
    _check_limits(wanted, classes)
    return wanted


def _request(
    ref: ClaimRef,
    entry: Mapping[str, Any],
    devices: Mapping[str, Any],
    classes: Mapping[str, Object],
) -> Request:
    name = entry["name"]
    if entry.get("exactly"):
        return Request(name, (_exact(ref, name, entry["exactly"], devices, classes),))
    subs = entry.get("firstAvailable") or ()
    if not subs:
        raise _unsupported(ref, name, "an unknown form of request")
    return Request(
        name,
        tuple(_exact(ref, f"{name}/{sub['name']}", sub, devices, classes) for sub in subs),
    )


def _exact(
    ref: ClaimRef,
    name: str,
    entry: Mapping[str, Any],
    devices: Mapping[str, Any],
    classes: Mapping[str, Object],
) -> ExactRequest:
    class_name = entry["deviceClassName"]
    found = classes.get(class_name)
    if found is None:
        raise Refused(
            f"claim {ref}, request {name}: the DeviceClass {class_name} does not exist",
            remedy="create it, or name one that kubectl get deviceclasses lists",
        )
    selectors = [*(found["spec"].get("selectors") or ()), *(entry.get("selectors") or ())]
    config = _config(ref, name, found, devices)
    capacity = _capacity(ref, name, entry, config)
    tolerations = tuple(entry.get("tolerations") or ())
    return ExactRequest(
        name=name,
        class_name=class_name,
        demand=demand(
            tuple(_expression(ref, name, selector) for selector in selectors),
            _count(ref, name, entry),
            tuple(sorted(capacity.items())),
            json.dumps(tolerations, sort_keys=True) if tolerations else "[]",
            admin_access=bool(entry.get("adminAccess")),
            packing=config.packing,
        ),
        tolerations=tolerations,
    )


def _config(
    ref: ClaimRef, request: str, device_class: Object, devices: Mapping[str, Any]
) -> RequestConfig:
    """What the class and then the claim, whose ``spec.devices`` is given, say for the request: the
    later entry wins. Raises InvalidValue where an entry for this driver is not understood, and
    Refused for an amount in a class."""
    config = RequestConfig()
    for entry, owner in _config_entries(ref, request, device_class, devices):
        said = read_config(entry, owner)
        if said is None:
            continue
        if said.amounts and owner.startswith("the DeviceClass"):
            raise Refused(
                f"{owner} asks for {', '.join(said.amounts)} in its configuration",
                remedy="write amounts in claims and claim templates",
            )
        config = said.over(config)
    return config


def _capacity(
    ref: ClaimRef, request: str, entry: Mapping[str, Any], config: RequestConfig
) -> Mapping[str, str]:
    """The amounts of both forms, ``capacity.requests`` and GcuConfig. Raises Refused where they
    differ: the two allocators would each grant another one."""
    written = (entry.get("capacity") or {}).get("requests") or {}
    capacity = {name: str(quantity) for name, quantity in written.items()}
    for name, amount in config.amounts.items():
        other = capacity.setdefault(name, str(amount))
        if requested_amount(other) != amount:
            raise Refused(
                f"claim {ref}, request {request}: its GcuConfig asks for {name} {amount}, and its "
                f"capacity.requests for {other}",
                remedy="ask for the same amount in both, or leave one of them out",
            )
    return capacity


def _config_entries(
    ref: ClaimRef, request: str, device_class: Object, devices: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    for entry in device_class["spec"].get("config") or ():
        yield entry, f"the DeviceClass {device_class['metadata']['name']}"
    for entry in devices.get("config") or ():
        if config_applies(entry, request):
            yield entry, f"claim {ref}"


def _count(ref: ClaimRef, name: str, entry: Mapping[str, Any]) -> int | None:
    mode = entry.get("allocationMode", "ExactCount")
    if mode == "All":
        return None
    if mode != "ExactCount":
        raise _unsupported(ref, name, f"allocationMode {mode}")
    return int(entry.get("count", 1))


def _expression(ref: ClaimRef, request: str, selector: Mapping[str, Any]) -> str:
    try:
        return str(selector["cel"]["expression"])
    except KeyError as error:
        raise _unsupported(ref, request, "a selector that is not CEL") from error


def _constraint(ref: ClaimRef, entry: Mapping[str, Any]) -> Constraint:
    """From a DeviceConstraint (resource.k8s.io/v1)."""
    requests = frozenset(entry.get("requests") or ())
    if entry.get("matchAttribute"):
        return Constraint(entry["matchAttribute"], requests, distinct=False)
    if entry.get("distinctAttribute"):
        return Constraint(entry["distinctAttribute"], requests, distinct=True)
    raise Refused(
        f"claim {ref}: a constraint of an unknown form is not supported",
        remedy="use matchAttribute or distinctAttribute",
    )


def _check_limits(wanted: ClaimRequest, classes: Mapping[str, Object]) -> None:
    # A request for all devices takes at least one.
    asked = sum(
        min(1 if sub.demand.count is None else sub.demand.count for sub in each.alternatives)
        for each in wanted.requests
    )
    if asked > MOST_RESULTS:
        raise Refused(
            f"claim {wanted.ref} requests {asked} devices, and a claim can hold {MOST_RESULTS}",
            remedy="split the claim",
        )
    configs = sum(_configs(wanted, classes))
    if configs > _MOST_CONFIGS:
        raise Refused(
            f"claim {wanted.ref} needs {configs} entries of configuration in its allocation, and "
            f"{_MOST_CONFIGS} are possible",
            remedy="name fewer requests in the entries of config, or split the claim",
        )


def _configs(wanted: ClaimRequest, classes: Mapping[str, Object]) -> Iterator[int]:
    """At least how many entries class and claim add, whatever subrequests are chosen (results.py
    has how they are counted)."""
    certain = [each.alternatives[0] for each in wanted.requests if len(each.alternatives) == 1]
    for name in {each.class_name for each in certain}:
        yield len(classes[name]["spec"].get("config") or ())
    for entry in (wanted.claim["spec"].get("devices") or {}).get("config") or ():
        named = entry.get("requests") or ()
        yield sum("/" not in name for name in named) if named else 1


def _unsupported(ref: ClaimRef, request: str, form: str) -> Refused:
    return Refused(
        f"claim {ref}, request {request}: {form} is not supported",
        remedy="use exactly or firstAvailable, with CEL selectors and a mode that is documented",
    )
