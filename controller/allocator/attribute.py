"""Attributes of devices, as constraints compare them (upstream: attributeAsSet, 1.36.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_KINDS = {
    "ints": "int",
    "bools": "bool",
    "strings": "string",
    "versions": "version",
    "int": "int",
    "bool": "bool",
    "string": "string",
    "version": "version",
}


@dataclass(frozen=True, slots=True)
class Attribute:
    """A value, or a list of values of one kind (lists are alpha in 1.36): compared as sets."""

    kind: str
    values: frozenset[Any]

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Attribute | None:
        """From a DeviceAttribute (resource.k8s.io/v1); None where its kind is not known."""
        for field, kind in _KINDS.items():
            value = entry.get(field)
            if isinstance(value, list):
                if value:
                    return cls(kind, frozenset(value))
            elif value is not None:
                return _scalar(kind, value)
        return None

    def common(self, other: Attribute) -> Attribute | None:
        """What both have, or None; values of different kinds have nothing in common."""
        if self.kind != other.kind:
            return None
        shared = self.values & other.values
        return Attribute(self.kind, shared) if shared else None


@lru_cache(4096)
def _scalar(kind: str, value: int | bool | str) -> Attribute:
    return Attribute(kind, frozenset((value,)))
