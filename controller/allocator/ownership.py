"""Which requests are ours to serve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from controller.allocator.nodes.signature import reads_own
from controller.allocator.state import State
from dra_driver.model.claims.claim import ClaimRef, Object, ReadOnlyObject
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import DEVICE_CLASSES, DRIVER


class MixesDrivers(Refused):
    """The claim also needs another driver, if only as an alternative: no allocator of one driver
    could write its allocation in one piece. kube-scheduler's can."""


@dataclass(frozen=True, slots=True)
class RequestOwners:
    """The requests of a claim, by their full names (``request/sub`` for a subrequest): those that
    this driver is to serve, and those that are for others."""

    claim: Object
    ours: frozenset[str]
    others: frozenset[str]

    def check_not_mixed(self) -> None:
        """Raises MixesDrivers if there are both."""
        if self.ours:
            self._check_no(self.others)

    def check_alternatives(self) -> None:
        """Raises MixesDrivers if alternatives of one request are of different drivers."""
        ours = {name.partition("/")[0] for name in self.ours}
        self._check_no({name for name in self.others if name.partition("/")[0] in ours})

    def only_ours(self) -> Object:
        """The claim without requests for others, and without constraints of a form that is not
        known: they may concern the others alone."""
        if not self.others:
            return self.claim
        ours, devices = (
            {name.partition("/")[0] for name in self.ours},
            self.claim["spec"]["devices"],
        )
        requests = [each for each in devices["requests"] if each["name"] in ours]
        constraints = [
            each
            for each in devices.get("constraints") or ()
            if each.keys() - {"requests"} in ({"matchAttribute"}, {"distinctAttribute"})
        ]
        kept = {"requests": requests, "constraints": constraints}
        kept |= {"config": devices["config"]} if "config" in devices else {}
        return self.claim | {"spec": {"devices": kept}}

    def _check_no(self, others: AbstractSet[str]) -> None:
        if others:
            raise MixesDrivers(
                f"claim {ClaimRef.of(self.claim)} mixes devices of {DRIVER} with another driver's "
                f"(request {', '.join(sorted(others))})",
                remedy="split it into one claim for each driver",
            )


def request_owners(claim: Object, state: State) -> RequestOwners:
    """Who is to serve the claim's requests. Raises AllowanceSpent."""
    state.refresh()
    served = {name: _serves(entry, state) for name, entry in forms(_devices(claim))}
    ours = frozenset(name for name, is_served in served.items() if is_served)
    return RequestOwners(claim, ours, frozenset(served) - ours)


def is_ours(claim: Object, state: State) -> bool:
    """Whether this driver is to serve the claim. Raises MixesDrivers."""
    owners = request_owners(claim, state)
    owners.check_not_mixed()
    return bool(owners.ours)


def serves_class(name: str, state: State) -> bool:
    """Whether this driver is to serve a request for the DeviceClass without other selectors."""
    state.refresh()
    return _serves({"deviceClassName": name}, state)


def requested_classes(claim: Object) -> frozenset[str]:
    """The names of the DeviceClasses that the claim asks for, alternatives included."""
    return frozenset(entry.get("deviceClassName", "") for _, entry in forms(_devices(claim)))


def _devices(claim: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = claim["spec"].get("devices") or {}
    return found


def forms(devices: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Of ``spec.devices`` each ``exactly`` by its request's name, each subrequest by
    ``request/sub``."""
    for request in devices.get("requests") or ():
        if request.get("exactly"):
            yield request["name"], request["exactly"]
        for sub in request.get("firstAvailable") or ():
            yield f"{request['name']}/{sub['name']}", sub


def _serves(exactly: Mapping[str, Any], state: State) -> bool:
    """Also a form whose selectors match a published device. Selectors that cannot be evaluated on
    our devices and do not name the driver are meant for others."""
    if names_driver(exactly, state.classes):
        return True
    expressions = _expressions(exactly, state.classes)
    return bool(expressions) and _selects_any(expressions, state)


def names_driver(form: Mapping[str, Any], classes: Mapping[str, ReadOnlyObject]) -> bool:
    """Whether the form is for one of our classes, or selectors of it or its class name the driver.
    That is enough while nothing is published, so that the user of another class learns why a claim
    waits."""
    if form.get("deviceClassName", "") in DEVICE_CLASSES:
        return True
    texts = _expressions(form, classes)
    return any(f'"{DRIVER}"' in each or f"'{DRIVER}'" in each for each in texts)


def _expressions(form: Mapping[str, Any], classes: Mapping[str, ReadOnlyObject]) -> tuple[str, ...]:
    """The selectors of the form's DeviceClass and its own; none while there is no such class."""
    found = classes.get(form.get("deviceClassName", ""))
    if found is None:
        return ()
    selectors = [*(found["spec"].get("selectors") or ()), *(form.get("selectors") or ())]
    return tuple(each.get("cel", {}).get("expression", "") for each in selectors)


def _selects_any(expressions: tuple[str, ...], state: State) -> bool:
    """Whether any published device satisfies all of the expressions. Raises AllowanceSpent."""
    selectors, fleet = state.selectors, state.fleet
    if selectors.excludes(expressions, DRIVER):
        return False
    for kind in dict.fromkeys(kind for card in fleet.with_cards for kind in card.kinds):
        selectors.allowance.check()
        own = reads_own(expressions, [kind], selectors)
        devices = fleet.devices_of(kind)
        for given in (device.selector_input for device in devices) if own else (kind.common,):
            with suppress(InvalidValue):
                if all(selectors.matches(text, given) for text in expressions):
                    return True
    return False
