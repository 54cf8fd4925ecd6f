"""A device as a selector sees it: the variable ``device`` of Kubernetes' CEL environment.

Source: k8s.io/dynamic-resource-allocation, package cel, compile.go (1.36.3).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from celpy import celtypes

from dra_driver.model.errors import InvalidValue
from dra_driver.model.quantity import parse_quantity
from dra_driver.selector.errors import UnsupportedError
from dra_driver.selector.operators import Value
from dra_driver.selector.quantity import Quantity


@dataclass(frozen=True, slots=True)
class SelectorInput:
    """All that a selector can read of a device; equal inputs get equal answers.

    `content` is the JSON of what the API calls attributes, capacity and
    allowMultipleAllocations, with sorted keys.
    """

    driver: str
    content: str

    @classmethod
    def of(cls, driver: str, device: Mapping[str, Any]) -> SelectorInput:
        """From an entry of a ResourceSlice's ``spec.devices`` (resource.k8s.io/v1)."""
        readable = [
            device.get("attributes") or {},
            {name: each["value"] for name, each in (device.get("capacity") or {}).items()},
            bool(device.get("allowMultipleAllocations")),
        ]
        return cls(driver, json.dumps(readable, sort_keys=True))

    def variables(self) -> dict[str, Value]:
        """The variables that an expression is evaluated with."""
        attributes, capacity, multiple = json.loads(self.content)
        fields = {
            "driver": celtypes.StringType(self.driver),
            "allowMultipleAllocations": celtypes.BoolType(multiple),
            "attributes": self._by_domain(attributes, _attribute),
            "capacity": self._by_domain(capacity, _quantity),
        }
        return {"device": _map(fields)}

    def _by_domain(self, values: Mapping[str, Any], convert: Callable[[Any], Value]) -> DomainMap:
        domains: dict[str, dict[str, Value]] = {}
        for name, value in values.items():
            domain, slash, identifier = name.partition("/")
            if not slash:  # unqualified names stand in the driver's own domain
                domain, identifier = self.driver, name
            domains.setdefault(domain, {})[identifier] = convert(value)
        return DomainMap({celtypes.StringType(key): _map(each) for key, each in domains.items()})


class DomainMap(celtypes.MapType):
    """Domains to maps of names. An unknown domain is an empty map, an unknown name in a known or
    unknown domain is a runtime error; ``in`` tells whether a domain is known."""

    def domain(self, key: Value) -> Value:
        return self[key] if key in self else celtypes.MapType()


def _map(values: Mapping[str, Value]) -> celtypes.MapType:
    return celtypes.MapType({celtypes.StringType(key): value for key, value in values.items()})


def _attribute(value: Mapping[str, Any]) -> Value:
    """One DeviceAttribute. Kinds that are not known become a marker that raises when read, so
    that expressions which do not read it still work."""
    for kind, convert in _KINDS.items():
        if kind in value:
            return convert(value[kind])
        if f"{kind}s" in value:
            return celtypes.ListType([convert(each) for each in value[f"{kind}s"]])
    return UnsupportedError(f"an attribute of the kind {'/'.join(value)} is not supported")


def _quantity(value: str) -> Value:
    try:
        return Quantity(parse_quantity(value))
    except InvalidValue as error:
        return UnsupportedError(str(error))


_KINDS: Final[dict[str, Callable[[Any], Value]]] = {
    "string": celtypes.StringType,
    "int": celtypes.IntType,
    "bool": celtypes.BoolType,
}
