"""Constraints of a claim over the devices of one, several or all of its requests, and the
attributes that they compare (upstream: attributeAsSet, constraint.go, 1.36.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controller.allocator.device import Device


@dataclass(frozen=True, slots=True)
class Attribute:
    """A value, or a list of values of one kind (lists are alpha in 1.36): compared as sets."""

    kind: str
    values: frozenset[Any]

    @classmethod
    def of(cls, kind: str, value: object) -> Attribute | None:
        """From a DeviceAttribute (resource.k8s.io/v1): the name of its only field, and the value,
        of a list as a tuple. None where the kind is not known, or the list is empty."""
        if isinstance(value, tuple):
            return cls(kind.removesuffix("s"), frozenset(value)) if value else None
        return None if value is None else _scalar(kind, value)

    def common(self, other: Attribute) -> Attribute | None:
        """What both have, or None; values of different kinds have nothing in common."""
        if self.kind != other.kind:
            return None
        shared = self.values & other.values
        return Attribute(self.kind, shared) if shared else None


# typed: True and 1 are equal, and their kinds are not.
@lru_cache(4096, typed=True)
def _scalar(kind: str, value: object) -> Attribute:
    return Attribute(kind, frozenset((value,)))


ConstraintState = tuple[Attribute, ...]
"""What the devices chosen so far leave of a constraint."""


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

    def add(self, before: ConstraintState, device: Device) -> ConstraintState | None:
        """The state with `device`; None where the constraint would be broken."""
        value = device.attribute(self.attribute)
        return None if value is None else self._add(before, value)

    @abstractmethod
    def _add(self, before: ConstraintState, value: Attribute) -> ConstraintState | None: ...

    @property
    @abstractmethod
    def words(self) -> str:
        """For people, after "2 requested"."""


class MatchAttribute(Constraint):
    """All devices have the same value; of lists, at least one value that all have."""

    __slots__ = ()

    def _add(self, before: ConstraintState, value: Attribute) -> ConstraintState | None:
        if not before:
            return (value,)
        shared = before[0].common(value)
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

    def _add(self, before: ConstraintState, value: Attribute) -> ConstraintState | None:
        if any(each.common(value) is not None for each in before):
            return None
        return (*before, value)

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
