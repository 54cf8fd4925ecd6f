"""What may be allocated, told from the API's own words by trying everything.

Reads plain objects and shares no code with the allocator. Knows the rules for one node and the
few selectors, quantities (whole numbers) and policies that `tests.property.states` writes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from tests.property.states import CLASS_OF, DRIVER, OURS, SELECTED, Scenario

Object = dict[str, Any]


@dataclass(frozen=True)
class Slot:
    """One device for one (sub)request of a claim."""

    claim: int
    request: int
    name: str  # request, or request/sub
    spec: Object


@dataclass(frozen=True)
class Choice:
    """Which alternative each request of each claim takes, and a device's name for each slot."""

    alternatives: tuple[int, ...]
    slots: tuple[Slot, ...]
    devices: tuple[str, ...]


class Oracle:
    """`node` has the devices of exactly one pool."""

    def __init__(self, scenario: Scenario, node: str) -> None:
        slices = [each for each in scenario.slices if each["spec"]["nodeName"] == node]
        self._devices: dict[str, Object] = {
            device["name"]: device for each in slices for device in each["spec"].get("devices", ())
        }
        self._pool = f"{DRIVER}/{node}"
        self._claims = scenario.wanted
        self._whole: set[str] = set()
        self._shared: set[str] = set()
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        for claim in scenario.held:
            self._hold(claim)

    def satisfiable(self) -> Choice | None:
        """The first alternatives that can be had together, with any devices for them."""
        return next(self._choices(), None)

    def _hold(self, claim: Object) -> None:
        for result in claim["status"]["allocation"]["devices"]["results"]:
            if result["pool"] != self._pool or result.get("adminAccess"):
                continue
            if result.get("shareID") is None:
                self._whole.add(result["device"])
                continue
            self._shared.add(result["device"])
            for name, amount in result.get("consumedCapacity", {}).items():
                self._used[result["device"]][name] += int(amount)

    def _choices(self) -> Iterator[Choice]:
        requests = [
            (claim, number, request)
            for claim, each in enumerate(self._claims)
            for number, request in enumerate(each["spec"]["devices"]["requests"])
        ]
        options = [list(_alternatives(*each)) for each in requests]
        for indices in product(*(range(len(each)) for each in options)):
            wanted = [each[index] for each, index in zip(options, indices, strict=True)]
            ways = [list(self._ways(slot)) for slot in wanted]
            for chosen in product(*ways):
                pairs = [
                    (slot, device)
                    for slot, devices in zip(wanted, chosen, strict=True)
                    for device in devices
                ]
                if self.valid(pairs):
                    slots, devices = zip(*pairs, strict=True)
                    yield Choice(indices, slots, devices)
                    break

    def _ways(self, slot: Slot) -> Iterator[tuple[str, ...]]:
        """Sets of devices that serve the request, looked at alone."""
        fitting = [name for name in self._devices if self._selects(slot, name)]
        if slot.spec.get("allocationMode") != "All":
            alone = [name for name in fitting if self.valid([(slot, name)])]
            yield from combinations(alone, slot.spec["count"])
            return
        wanted = tuple(name for name in fitting if self._is_large_enough(slot, name))
        if wanted:
            yield wanted

    def _selects(self, slot: Slot, name: str) -> bool:
        device = self._devices[name]
        wanted_type = CLASS_OF[slot.spec["deviceClassName"]]
        if wanted_type and device["attributes"]["type"]["string"] != wanted_type:
            return False
        return all(
            SELECTED[each["cel"]["expression"]](device) for each in slot.spec.get("selectors", ())
        )

    def valid(self, pairs: Sequence[tuple[Slot, str]]) -> bool:
        """Whether all these grants together, on top of what is held, break no rule."""
        names = {name for _, name in pairs}
        return (
            all(self._tolerated(slot, name) for slot, name in pairs)
            and all(self._has_capacity(pairs, name) for name in names)
            and all(self._is_free(slot, name) for slot, name in pairs)
            and self._undisputed(pairs)
            and self._in_one_mode(pairs)
            and not any(self._devices[name].get("consumesCounters") for name in names)
            and self._constrained(pairs)
            and all(count <= 32 for count in Counter(slot.claim for slot, _ in pairs).values())
        )

    def _tolerated(self, slot: Slot, name: str) -> bool:
        return all(
            taint["effect"] not in ("NoSchedule", "NoExecute")
            or (taint["key"], taint.get("value")) == OURS
            or any(_tolerates(each, taint) for each in slot.spec.get("tolerations", ()))
            for taint in self._devices[name].get("taints", ())
        )

    def _is_large_enough(self, slot: Slot, name: str) -> bool:
        """Whether the device could serve the request if nothing of it were held."""
        return self._fits_beside(Counter(), [(slot, name)], name)

    def _has_capacity(self, pairs: Sequence[tuple[Slot, str]], name: str) -> bool:
        return self._fits_beside(self._used[name], pairs, name)

    def _fits_beside(
        self, used: Mapping[str, int], pairs: Sequence[tuple[Slot, str]], name: str
    ) -> bool:
        device = self._devices[name]
        capacity: Mapping[str, Any] = device.get("capacity", {})
        total: Counter[str] = Counter(used)
        for slot, chosen in pairs:
            if chosen != name:
                continue
            asked = slot.spec.get("capacity", {}).get("requests", {})
            if asked.keys() - capacity.keys():
                return False
            if not device.get("allowMultipleAllocations"):
                total = Counter()  # nothing is counted of it, but what is asked must fit
            for each, entry in capacity.items():
                amount = _consumed(entry, asked.get(each))
                if amount is None:
                    return False
                total[each] += amount
        return all(total[each] <= int(entry["value"]) for each, entry in capacity.items())

    def _is_free(self, slot: Slot, name: str) -> bool:
        if slot.spec.get("adminAccess"):
            return True
        if self._devices[name].get("allowMultipleAllocations"):
            return name not in self._whole
        return name not in self._whole | self._shared

    def _undisputed(self, pairs: Sequence[tuple[Slot, str]]) -> bool:
        """A device that is not shared is asked once; administrative access passes by earlier
        claims."""
        for earlier, later in combinations(pairs, 2):
            same = earlier[1] == later[1]
            if not same or self._devices[earlier[1]].get("allowMultipleAllocations"):
                continue
            if not later[0].spec.get("adminAccess") or earlier[0].claim == later[0].claim:
                return False
        return True

    def _in_one_mode(self, pairs: Sequence[tuple[Slot, str]]) -> bool:
        chosen = {name for slot, name in pairs if not slot.spec.get("adminAccess")}
        for name in chosen:
            card = _card(self._devices[name])
            others = {
                other
                for other in (self._whole | self._shared | chosen) - {name}
                if card is not None and self._card_of_held(other) == card
            }
            if others:
                return False
        return True

    def _card_of_held(self, name: str) -> str | None:
        if name in self._devices:
            return _card(self._devices[name])
        _, _, slug = name.partition("-")  # it vanished: the name tells the PCI address
        return f"{slug[:7].replace('-', ':')}:{slug[8:10]}.{slug[11:]}" if slug else None

    def _constrained(self, pairs: Sequence[tuple[Slot, str]]) -> bool:
        for number, claim in enumerate(self._claims):
            for constraint in claim["spec"]["devices"].get("constraints", ()):
                wanted = constraint.get("requests", ())
                names = [
                    name
                    for slot, name in pairs
                    if slot.claim == number
                    and (not wanted or {slot.name, slot.name.partition("/")[0]} & set(wanted))
                ]
                if not self._holds(constraint, names):
                    return False
        return True

    def _holds(self, constraint: Object, names: Sequence[str]) -> bool:
        attribute = constraint.get("matchAttribute") or constraint["distinctAttribute"]
        sets = [_values(self._devices[name], attribute) for name in names]
        if not all(sets):
            return False
        if "matchAttribute" in constraint:
            return not sets or bool(frozenset.intersection(*sets))
        return all(not one & other for one, other in combinations(sets, 2))


def _alternatives(claim: int, number: int, request: Object) -> Iterator[Slot]:
    if "exactly" in request:
        yield Slot(claim, number, request["name"], request["exactly"])
    for sub in request.get("firstAvailable", ()):
        yield Slot(claim, number, f"{request['name']}/{sub['name']}", sub)


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("key") not in (None, taint["key"]):
        return False
    if toleration.get("effect") not in (None, taint["effect"]):
        return False
    return bool(
        toleration.get("operator") == "Exists"
        or toleration.get("value", "") == taint.get("value", "")
    )


def _consumed(entry: Object, asked: str | None) -> int | None:
    """None where the policy allows no such request."""
    policy = entry.get("requestPolicy", {})
    if asked is None:
        return int(policy.get("default", entry["value"]))
    amount = int(asked)
    if "validValues" in policy:
        return min((int(v) for v in policy["validValues"] if int(v) >= amount), default=None)
    if "validRange" in policy:
        span = policy["validRange"]
        allowed = range(int(span["min"]), int(span["max"]) + 1, int(span.get("step", 1)))
        return min((value for value in allowed if value >= amount), default=None)
    return amount


def _card(device: Object) -> str | None:
    found: str | None = device["attributes"].get("card", {}).get("string")
    return found


def _values(device: Object, attribute: str) -> frozenset[tuple[str, Any]]:
    entry = device["attributes"].get(attribute.removeprefix(f"{DRIVER}/"), {})
    return frozenset(
        (kind.removesuffix("s"), value)
        for kind, values in entry.items()
        for value in (values if isinstance(values, list) else [values])
    )
