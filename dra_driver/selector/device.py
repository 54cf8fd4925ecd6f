"""A device as a selector sees it: the variable ``device`` of Kubernetes' CEL environment.

Source: k8s.io/dynamic-resource-allocation, package cel, compile.go (1.36.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.library.quantity import Quantity
from dra_driver.selector.library.semver import Semver
from dra_driver.selector.reads import Path
from dra_driver.selector.values import DomainMap, Value

_KINDS: Final = ("string", "int", "bool", "version")
_SHAPES: Final = 1_024


@dataclass(frozen=True, slots=True)
class DeviceValue:
    """A value that a device has: where it stands, and its kind in the API."""

    path: Path
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The entries of devices that have the same ones. Such devices share one object, so that it
    is told from others by its identity."""

    entries: tuple[DeviceValue, ...]


@dataclass(frozen=True, slots=True)
class SelectorInput:
    """All that a selector can read of a device: a value for each entry of the shape. Devices that
    are equal get equal answers."""

    shape: Shape
    values: tuple[Value, ...]

    @classmethod
    def of(cls, driver: str, device: Mapping[str, Any]) -> SelectorInput:
        """From an entry of a ResourceSlice's ``spec.devices`` (resource.k8s.io/v1)."""
        attributes = sorted((device.get("attributes") or {}).items())
        capacity = sorted((device.get("capacity") or {}).items())
        kinds = tuple([(name, next(iter(attribute), "")) for name, attribute in attributes])
        values = [driver, bool(device.get("allowMultipleAllocations"))]
        values += [_hashable(attribute) for _, attribute in attributes]
        values += [each["value"] for _, each in capacity]
        return cls(_shape(driver, kinds, tuple([name for name, _ in capacity])), tuple(values))


@lru_cache(_SHAPES)
def _shape(
    driver: str, attributes: tuple[tuple[str, str], ...], capacity: tuple[str, ...]
) -> Shape:
    """The one shape of devices with attributes of these names and kinds, and capacities."""
    return Shape(
        (
            DeviceValue(("driver",), "string"),
            DeviceValue(("allowMultipleAllocations",), "bool"),
            *(DeviceValue(_path("attributes", driver, name), kind) for name, kind in attributes),
            *(DeviceValue(_path("capacity", driver, name), "quantity") for name in capacity),
        )
    )


def device_variable(entries: Iterable[DeviceValue], values: Iterable[Value]) -> dict[str, Value]:
    """The variable ``device`` with these values. Raises RefusedError for one that cannot be read:
    upstream then evaluates no expression at all, here those that do not ask for it are."""
    device: dict[str, Value] = {"attributes": DomainMap(), "capacity": DomainMap()}
    for entry, value in zip(entries, values, strict=True):
        *parents, name = entry.path
        place = device
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = _value(entry, value)
    return device


def _path(field: str, driver: str, name: str) -> Path:
    domain, slash, identifier = name.partition("/")
    # Unqualified names stand in the driver's own domain.
    return (field, domain, identifier) if slash else (field, driver, name)


def _hashable(attribute: Mapping[str, Any]) -> Value:
    for kind in _KINDS:
        if kind in attribute:
            return attribute[kind]
        if f"{kind}s" in attribute:
            return tuple(attribute[f"{kind}s"])
    return None  # of a kind that cannot be read, whatever it holds


def _value(entry: DeviceValue, value: Value) -> Value:
    kind = entry.kind
    if kind in _KINDS:
        return _single(entry, value)
    if kind.removesuffix("s") in _KINDS:
        return [_single(entry, each) for each in value]
    if kind == "quantity":
        return _parsed(Quantity, entry, value)
    raise RefusedError(f"the device's {'/'.join(entry.path)} of the kind {kind!r} is not supported")


def _single(entry: DeviceValue, value: Value) -> Value:
    return _parsed(Semver, entry, value) if entry.kind.startswith("version") else value


def _parsed(kind: type[Quantity | Semver], entry: DeviceValue, text: str) -> Value:
    try:
        return kind.parse(text)
    except EvaluationError as error:
        raise RefusedError(f"the device's {'/'.join(entry.path)}: {error}") from error
