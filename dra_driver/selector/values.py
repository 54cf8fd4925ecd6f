"""Values of CEL: Python's bool, int, float, str, bytes, list, dict and None, and the types that
Python lacks. Equality and order are CEL's; Python's own say ``True == 1``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

from dra_driver.selector.errors import EvaluationError, RefusedError

Value = Any

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
UINT64_MAX: Final = 2**64 - 1


class Uint(int):
    """CEL's uint; told from an int by its type."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanoseconds: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Nanoseconds since 1970 in UTC, and the offset in minutes that its text had."""

    nanoseconds: int
    offset: int = field(default=0, compare=False)


class Opaque:
    """A value of Kubernetes' own types: to compare it with another type is an error, where CEL's
    own values merely differ (k8s.io/apiserver, pkg/cel, quantity.go, semver.go)."""

    __slots__ = ()

    def comparable(self, other: Value) -> bool:
        return type(self) is type(other)


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be there or not. The content may also be a RefusedError, which is raised
    when the value is taken out."""

    present: bool
    content: Value = None

    @property
    def value(self) -> Value:
        """Raises EvaluationError where there is none, RefusedError where the content is one."""
        if not self.present:
            raise EvaluationError("optional.none() dereference")
        if isinstance(self.content, RefusedError):
            raise self.content.with_traceback(None)
        return self.content


NOTHING: Final = Optional(False)


class DomainMap(dict[str, Value]):
    """Domains to maps of names. Looking up an unknown domain finds an empty map, and ``in`` tells
    whether a domain is known."""

    def __missing__(self, _key: Value) -> Value:
        return {}


_NUMBERS: Final = frozenset({int, Uint, float})
_ORDERED: Final = frozenset({bool, str, bytes, Duration, Timestamp})
_NAMES: Final = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    type(None): "null_type",
    Optional: "optional_type",
}


def kind(value: Value) -> str:
    """CEL's name of the value's type."""
    if isinstance(value, dict):
        return "map"
    return _NAMES.get(type(value)) or type(value).__name__.lower()


def no_overload(name: str, *values: Value) -> EvaluationError:
    return EvaluationError(f"no such overload: {name}({', '.join(map(kind, values))})")


def equal(left: Value, right: Value) -> bool:
    """``==``: values of different types differ, and numbers compare by what they count.

    Raises EvaluationError where the left one is Opaque and the right one of another type.
    """
    if type(left) in _NUMBERS and type(right) in _NUMBERS:
        return _order(left, right) == 0
    if left is None or right is None:
        return left is right
    if isinstance(left, Opaque) and not left.comparable(right):
        raise no_overload("==", left, right)
    if isinstance(left, Optional) and isinstance(right, Optional) and left.present:
        return right.present and equal(left.value, right.value)
    if type(left) is list and type(right) is list:
        return len(left) == len(right) and all(map(_not_unequal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(
            key in right and _not_unequal(left[key], right[key]) for key in left
        )
    return type(left) is type(right) and bool(left == right)


def has_order(value: Value) -> bool:
    """Whether `compare` knows the value's type."""
    return type(value) in _NUMBERS or type(value) in _ORDERED


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1. Raises EvaluationError for values that have no order, such as NaN."""
    if type(left) in _NUMBERS and type(right) in _NUMBERS:
        order = _order(left, right)
        if order is None:
            raise EvaluationError("NaN values cannot be ordered")
        return order
    if type(left) is type(right) and type(left) in _ORDERED:
        return int(left > right) - int(left < right)
    raise no_overload("<", left, right)


def map_key(key: Value) -> Value:
    """A key by which a dict finds what CEL finds: 1, 1u and 1.0 are one key, true is another.

    Raises EvaluationError for a value that cannot be a key.
    """
    if type(key) is bool or type(key) is str:
        return key if type(key) is str else (key,)
    if type(key) in _NUMBERS:
        # Only a double needs help: an int and a uint have one hash, and each stays what it is.
        return int(key) if type(key) is float and key.is_integer() else key
    raise EvaluationError(f"unsupported key type: {kind(key)}")


def key_value(key: Value) -> Value:
    """The key of `map_key` as CEL's value again."""
    return key[0] if type(key) is tuple else key


def _not_unequal(left: Value, right: Value) -> bool:
    # Inside lists and maps cel-go takes a pair that cannot be compared for an equal one.
    try:
        return equal(left, right)
    except EvaluationError:
        return True


def _order(left: float, right: float) -> int | None:
    if type(left) is float or type(right) is float:
        # As cel-go does: an integer is rounded to a double, not compared exactly.
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            return None
    return (left > right) - (left < right)
