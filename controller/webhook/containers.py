"""The containers of a new pod that have limits for GCUs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import ANNOTATION_ISOLATION, RESOURCE_CORE, RESOURCE_MEMORY
from dra_driver.model.quantity import parse_quantity

MEASURES: Final = frozenset({RESOURCE_MEMORY, RESOURCE_CORE})
"""The limits by memory and compute. A pod may have both."""

_MOST: Final = MappingProxyType({RESOURCE_MEMORY: 9_999_999, RESOURCE_CORE: 99})
_MOST_OF_OTHERS: Final = 999
_DEFAULT_ISOLATION: Final = "fixed-share"


@dataclass(frozen=True, slots=True)
class Container:
    """`at` is when it starts, as a number; it `ends` before the next one starts. `amounts` are by
    limit; empty where one of them is no whole number that can be served."""

    name: str
    path: str
    at: int
    ends: bool
    resources: Mapping[str, Any]
    amounts: Mapping[str, int]

    def resources_without(self, limits: AbstractSet[str]) -> Object:
        """A copy of its resources without these, in limits and in requests."""
        found = dict(self.resources)
        for field in ("limits", "requests"):
            if field in found:
                kept = {name: each for name, each in found[field].items() if name not in limits}
                found[field] = kept
        return found


def asked_limits(spec: Object, limits: AbstractSet[str]) -> frozenset[str]:
    """Those of `limits` that any container of a pod's spec has."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return frozenset(name for each in containers for name in limits & _limits(each).keys())


def asking_containers(spec: Object, asked: AbstractSet[str]) -> Iterator[Container]:
    """Those with one of the limits `asked`; init containers come last."""
    inits = spec.get("initContainers") or ()
    for i, each in enumerate(spec.get("containers") or ()):
        if asked & _limits(each).keys():
            yield _container(each, f"/spec/containers/{i}", len(inits) + i, False, asked)
    for i, each in enumerate(inits):
        if asked & _limits(each).keys():
            ends = each.get("restartPolicy") != "Always"
            yield _container(each, f"/spec/initContainers/{i}", i, ends, asked)


def isolation_of(pod: Object) -> str:
    """The word of the pod's annotation, whatever it is, or the default."""
    annotations = pod["metadata"].get("annotations") or {}
    return str(annotations.get(ANNOTATION_ISOLATION, _DEFAULT_ISOLATION))


def _container(
    raw: Mapping[str, Any], path: str, at: int, ends: bool, asked: AbstractSet[str]
) -> Container:
    return Container(raw["name"], path, at, ends, raw["resources"], _amounts(raw, asked))


def _limits(container: Mapping[str, Any]) -> Mapping[str, Any]:
    limits: Mapping[str, Any] = (container.get("resources") or {}).get("limits") or {}
    return limits


def _amounts(container: Mapping[str, Any], asked: AbstractSet[str]) -> Mapping[str, int]:
    found = {}
    for name in asked & _limits(container).keys():
        try:
            amount = parse_quantity(str(_limits(container)[name]))
        except InvalidValue:
            return {}
        if amount.denominator != 1 or not 1 <= amount <= _MOST.get(name, _MOST_OF_OTHERS):
            return {}
        found[name] = int(amount)
    return found
