"""What a pod requests by the vendor's limits. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final

from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import RESOURCE_DRS, RESOURCE_SHARED, RESOURCE_WHOLE
from dra_driver.model.quantity import parse_quantity

Pod = Mapping[str, Any]
_Container = Mapping[str, Any]

MODES: Final[Mapping[str, Mode]] = MappingProxyType(
    {RESOURCE_WHOLE: Mode.WHOLE, RESOURCE_SHARED: Mode.SHARED, RESOURCE_DRS: Mode.DRS}
)


@dataclass(frozen=True, slots=True)
class LimitRequest:
    """`containers` are those that hold devices while the pod runs, sidecars included: name and
    amount (cards, slices, or the size of one DRS instance). `total` is more than their sum where an
    init container requests more than the containers after it."""

    mode: Mode
    containers: tuple[tuple[str, int], ...]
    total: int


def concerns_us(pod: Pod) -> bool:
    """Whether any container has one of the limits, be it 0."""
    return any(MODES.keys() & _limits(each).keys() for _, each in _all_containers(pod))


def parse_limits(pod: Pod) -> LimitRequest | None:
    """The pod's request; None where the pod requests no GCU.

    Raises Refused for what no node can give, whatever is free on it.
    """
    asking = [
        (is_init, each["name"], mode, amount)
        for is_init, each in _all_containers(pod)
        for mode, amount in _amounts(each)
    ]
    modes = {mode for _, _, mode, _ in asking}
    if not modes:
        return None
    if len(modes) > 1:
        names = ", ".join(sorted(name for name, mode in MODES.items() if mode in modes))
        raise Refused(f"the pod requests {names}", remedy="request one kind of GCU per pod")
    (mode,) = modes
    if mode is Mode.DRS:
        kept = tuple(_instances((is_init, name, size) for is_init, name, _, size in asking))
    else:
        kept = tuple((name, amount) for is_init, name, _, amount in asking if not is_init)
    # What only init containers request is held for the pod until it ends.
    kept = kept or (max(((name, amount) for _, name, _, amount in asking), key=itemgetter(1)),)
    return LimitRequest(mode, kept, _total(pod))


def _instances(asking: Iterable[tuple[bool, str, int]]) -> Iterator[tuple[str, int]]:
    """Which container holds which instance. The kubelet hands an init container's devices on to the
    next container that requests some, be it a sidecar; without one, the pod has them until it
    ends."""
    before = None
    for is_init, name, size in asking:
        if before is not None and size != before[1]:
            raise Refused(
                f"init container {before[0]} asks for a DRS instance of size {before[1]}, and "
                f"container {name}, to which it is handed on, for size {size}",
                remedy="request the same size in both",
            )
        before = (name, size) if is_init else None
        if not is_init:
            yield name, size
    if before is not None:
        yield before


def _total(pod: Pod) -> int:
    """The most that is held at one time (upstream: component-helpers/resource, PodRequests):
    sidecars stay, other init containers come one after the other."""
    highest = running = 0
    for is_init, each in _all_containers(pod):
        amount = sum(amount for _, amount in _amounts(each))
        highest = max(highest, running + amount)
        if not is_init:
            running += amount
    return highest


def _all_containers(pod: Pod) -> Iterator[tuple[bool, _Container]]:
    """All in the order in which they start, each with whether it ends before the next one."""
    spec = pod["spec"]
    for each in spec.get("initContainers") or ():
        yield each.get("restartPolicy") != "Always", each
    for each in spec.get("containers") or ():
        yield False, each


def _limits(container: _Container) -> Mapping[str, Any]:
    limits: Mapping[str, Any] = (container.get("resources") or {}).get("limits") or {}
    return limits


def _amounts(container: _Container) -> Iterator[tuple[Mode, int]]:
    limits = _limits(container)
    for name in MODES.keys() & limits.keys():
        try:
            amount = ceil(parse_quantity(str(limits[name])))
        except InvalidValue as error:
            raise Refused(f"container {container['name']}, limit {name}: {error}") from error
        if amount:
            yield MODES[name], amount
