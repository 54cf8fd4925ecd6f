"""Constraints of a claim over the devices of one, several or all of its requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.allocator.attribute import Attribute
from controller.allocator.device import Device

Standing = tuple[Attribute, ...]  # what the devices chosen so far leave of a constraint


@dataclass(frozen=True, slots=True)
class Constraint(ABC):
    """`requests` holds names of requests, or of subrequests as ``request/sub``; empty means all.
    A device without the attribute breaks any constraint on it."""

    attribute: str
    requests: frozenset[str]

    def applies(self, request: str) -> bool:
        """`request` is the full name: ``request/sub`` where it is a subrequest."""
        wanted = self.requests
        return not wanted or request in wanted or request.partition("/")[0] in wanted

    def add(self, standing: Standing, device: Device) -> Standing | None:
        """The standing with `device`; None where the constraint would be broken."""
        value = device.attribute(self.attribute)
        return None if value is None else self._add(standing, value)

    @abstractmethod
    def _add(self, standing: Standing, value: Attribute) -> Standing | None: ...

    @property
    @abstractmethod
    def words(self) -> str:
        """For people, after "2 requested"."""


class MatchAttribute(Constraint):
    """All devices have the same value; of lists, at least one value that all have."""

    __slots__ = ()

    def _add(self, standing: Standing, value: Attribute) -> Standing | None:
        if not standing:
            return (value,)
        shared = standing[0].common(value)
        return None if shared is None else (shared,)

    @property
    def words(self) -> str:
        return f"with the same {self.attribute}"


class DistinctAttribute(Constraint):
    """No two devices have a value in common.

    This is what the API documents. Upstream (1.36.3) remembers one value for each request and
    so misses equal ones within a request of three devices or more.
    """

    __slots__ = ()

    def _add(self, standing: Standing, value: Attribute) -> Standing | None:
        if any(each.common(value) is not None for each in standing):
            return None
        return (*standing, value)

    @property
    def words(self) -> str:
        return f"with distinct {self.attribute}"


def parse_constraint(entry: Mapping[str, Any]) -> Constraint | None:
    """From a DeviceConstraint (resource.k8s.io/v1); None for a form that is not known."""
    requests = frozenset(entry.get("requests") or ())
    if entry.get("matchAttribute"):
        return MatchAttribute(entry["matchAttribute"], requests)
    if entry.get("distinctAttribute"):
        return DistinctAttribute(entry["distinctAttribute"], requests)
    return None
