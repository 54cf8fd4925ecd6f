"""What the containers of a pod ask for by limits. Pure.

A limit of 0 asks for nothing, as in Kubernetes. API servers set the request of an extended resource
to its limit, and some readers keep one of the two, so both are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from dra_driver.config.device_config import ISOLATION
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import (
    ANNOTATION_ISOLATION,
    CLASS_LIMIT_PREFIX,
    DEVICE_CLASSES,
    RESOURCE_CORE,
    RESOURCE_MEMORY,
    RESOURCE_WHOLE,
)
from dra_driver.model.quantity import parse_quantity

Pod = Mapping[str, Any]

COUNTED: Final = tuple(RESOURCES.values())
"""The vendor's limits, which kubelets count where there is no DRA."""

MEASURES: Final = (RESOURCE_MEMORY, RESOURCE_CORE)
"""The limits by memory (MiB) and compute (percent of a card). A pod may have both."""

LIMITS: Final = (
    *COUNTED,
    *MEASURES,
    *(f"{CLASS_LIMIT_PREFIX}{name}" for name in DEVICE_CLASSES),
)
"""All limits that the driver serves in any way."""

_DEFAULT_ISOLATION: Final = "fixed-share"
_RANGES: Final[Mapping[str, tuple[int, str, str]]] = MappingProxyType(
    {
        RESOURCE_MEMORY: (9_999_999, "a number of MiB, such as 20480", ""),
        RESOURCE_CORE: (
            99,
            "1 to 99 percent of one card",
            f"for a whole card, use the limit {RESOURCE_WHOLE}",
        ),
    }
)
"""The largest amount of a measure, what a measure is, and what to do beyond it."""


class Container(msgspec.Struct, frozen=True):
    """A container that asks for GCUs: entry `index` of the pod's `field`, which is ``containers``
    or ``initContainers``. It starts as number `start` of the pod's containers. `ends` is whether it
    ends before the next one starts. `amounts` are by limit, each 1 or more."""

    name: str
    field: str
    index: int
    start: int
    ends: bool
    amounts: Mapping[str, int]

    @property
    def path(self) -> str:
        """Its JSON pointer (RFC 6901) in the pod."""
        return f"/spec/{self.field}/{self.index}"

    @property
    def amount(self) -> int:
        """Of the one limit of a pod that asks by no measures."""
        (amount,) = self.amounts.values()
        return amount

    def covers(self, other: Container) -> bool:
        """Whether this container asks for at least as much as the other one by each limit."""
        return all(self.amounts.get(name, 0) >= n for name, n in other.amounts.items())


class Ask(msgspec.Struct, frozen=True):
    """`limits` is one limit, or one or both measures. `containers` are in the order in which they
    start. `isolation` matters for measures alone (docs/adr/0030)."""

    limits: tuple[str, ...]
    containers: tuple[Container, ...]
    isolation: str

    @property
    def is_measured(self) -> bool:
        return self.limits[0] in MEASURES

    @property
    def peak(self) -> int:
        """The largest amount that the pod has at one time, where kubelets count it. Sidecars stay;
        other init containers run one after the other (component-helpers/resource, PodRequests)."""
        highest = running = 0
        for container in self.containers:
            highest = max(highest, running + container.amount)
            running += 0 if container.ends else container.amount
        return highest


def read_ask(pod: Pod, limits: Collection[str] = LIMITS) -> Ask | None:
    """What the pod asks for by these limits; None where it asks for no GCU.

    Raises Refused for what no cluster can give: two kinds of GCU, an amount that is no whole
    number, a measure that no card has, an unknown isolation.
    """
    containers = tuple(asking(pod, limits))
    asked = {name for container in containers for name in container.amounts}
    ordered = tuple(name for name in LIMITS if name in asked)
    if not ordered:
        return None
    if len(ordered) > 1 and not asked <= set(MEASURES):
        raise Refused(
            f"the pod asks for {' and '.join(ordered)}: a pod asks for one kind of GCU",
            remedy="split it into several pods",
        )
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    ask = Ask(ordered, containers, str(annotations.get(ANNOTATION_ISOLATION, _DEFAULT_ISOLATION)))
    if ask.is_measured and ask.isolation not in ISOLATION:
        raise Refused(
            f"the annotation {ANNOTATION_ISOLATION} is fixed-share or best-effort",
            remedy="no isolation of GCUs lends idle compute, as burst-share does",
        )
    return ask


def limit_names(
    pod: Pod, is_meant: Callable[[str], bool] = LIMITS.__contains__, *, zero: bool = False
) -> set[str]:
    """The names of the pod's limits for which `is_meant`; with `zero` also those of 0."""
    return {
        name
        for _, _, raw in all_containers(pod)
        for name, text in resources_of(raw).items()
        if is_meant(name) and (zero or not _is_zero(text))
    }


def asking(pod: Pod, limits: Collection[str]) -> Iterator[Container]:
    """The containers that ask by any of the limits, in the order in which they start. Raises
    Refused for an amount that no API server stores."""
    for start, (field, index, raw) in enumerate(all_containers(pod)):
        amounts = {
            name: amount
            for name, text in resources_of(raw).items()
            if name in limits and (amount := _amount(raw["name"], name, text))
        }
        if amounts:
            ends = field == "initContainers" and raw.get("restartPolicy") != "Always"
            yield Container(raw["name"], field, index, start, ends, amounts)


def all_containers(pod: Pod) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """All in the order in which they start; sidecars are init containers, too."""
    for field in ("initContainers", "containers"):
        for index, raw in enumerate(pod["spec"].get(field) or ()):
            yield field, index, raw


def resources_of(container: Mapping[str, Any]) -> Mapping[str, object]:
    """Requests and limits of a container, by name."""
    resources = container.get("resources") or {}
    return {**(resources.get("requests") or {}), **(resources.get("limits") or {})}


def _amount(container: str, limit: str, text: object) -> int:
    title = f"container {container}: the limit {limit}"
    try:
        amount = parse_quantity(str(text))
    except InvalidValue as error:
        raise Refused(f"{title}: {error.what}", remedy=error.remedy) from error
    if amount < 0:
        raise Refused(f"{title} must be greater than or equal to 0, and is {text}")
    if amount.denominator != 1:
        raise Refused(f"{title} must be an integer, and is {text}")
    most, words, remedy = _RANGES.get(limit, (amount, "", ""))
    if amount > most:
        raise Refused(f"{title} is {words}", remedy=remedy)
    return int(amount)


def _is_zero(text: object) -> bool:
    try:
        return parse_quantity(str(text)) == 0
    except InvalidValue:
        return False
