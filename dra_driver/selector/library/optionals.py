"""Optional values (github.com/google/cel-go v0.26.0, cel/library.go, version 2 of the library).

`or` and `orValue` evaluate their argument only where it is needed: dra_driver.selector.interpreter.
"""

from __future__ import annotations

from typing import Final

from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.library.overload import Library, Overload
from dra_driver.selector.types import BOOL, INT, A, B, list_of, map_of, optional_of
from dra_driver.selector.values import (
    INT64_MAX,
    NOTHING,
    DomainMap,
    Duration,
    Opaque,
    Optional,
    Timestamp,
    Uint,
    Value,
    kind,
    map_key,
    no_overload,
)

_INDEXES: Final = frozenset({int, Uint, float})
_KEYS: Final = _INDEXES | {bool, str}
_ZERO_TIME: Final = -62_135_596_800 * 10**9  # of Go's time.Time: the beginning of the year 1
_ZEROS: Final = (False, 0, Uint(0), 0.0, "", b"", Duration(0), Timestamp(_ZERO_TIME), None)


def find(container: Value, key: Value) -> Optional:
    """What is there under the key; nothing in values that hold nothing.

    Raises EvaluationError for a key that the container cannot have, and what stands in its place
    if that is a RefusedError.
    """
    if isinstance(container, RefusedError):
        raise container.with_traceback(None)
    if type(key) not in _KEYS:
        raise no_overload("[]", container, key)
    if isinstance(container, dict):
        found = map_key(key)
        known = found in container or isinstance(container, DomainMap)
        return Optional(True, container[found]) if known else NOTHING
    if type(container) is list:
        if type(key) not in _INDEXES or key != key // 1 or key > INT64_MAX:
            raise no_overload("[]", container, key)
        return Optional(True, container[int(key)]) if 0 <= key < len(container) else NOTHING
    return NOTHING


def chosen(container: Value, key: Value) -> Optional:
    """What an optional container, or any other, has under the key."""
    if not isinstance(container, Optional):
        return find(container, key)
    return find(held(container), key) if container.present else NOTHING


def held(optional: Optional) -> Value:
    """What a selection from an optional value selects from, and what a variable's optional value
    holds. Upstream turns the value into one of Go's and back: an optional value in it is gone, what
    is Opaque has become an error, and a map of domains finds those only that there are. Kubernetes
    1.37 leaves the last two as they are, and so they are refused: no answer may depend on that."""
    value = optional.content
    while isinstance(value, Optional):
        value = value.content
    if isinstance(value, Opaque | DomainMap):
        name = kind(value) if isinstance(value, Opaque) else "map of domains"
        return RefusedError(f"what an optional {name} holds depends on the version of Kubernetes")
    return value


def reread(value: Value) -> Value:
    """What a variable with the value evaluates to, and a ``?:`` that chooses it."""
    if isinstance(value, Optional) and value.present:
        return Optional(True, held(value))
    return value


def of_non_zero(value: Value) -> Optional:
    """Nothing for the zero value of CEL's own types."""
    empty = type(value) in {list, dict} and not value
    zero = any(type(value) is type(each) and value == each for each in _ZEROS)
    return NOTHING if empty or zero else Optional(True, value)


def unwrap(values: list[Value]) -> list[Value]:
    """What those hold that hold anything."""
    for value in values:
        if not isinstance(value, Optional):
            raise EvaluationError("unwrap: a value of the list is not optional")
    return [each.value for each in values if each.present]


def first(values: list[Value]) -> Optional:
    return Optional(True, values[0]) if values else NOTHING


def last(values: list[Value]) -> Optional:
    return Optional(True, values[-1]) if values else NOTHING


_LIST: Final = list_of(A)
_MAP: Final = map_of(A, B)
_OPTIONAL: Final = optional_of(A)

LIBRARY: Final = Library(
    functions={
        "optional.of": (Overload((A,), _OPTIONAL, lambda value: Optional(True, value)),),
        "optional.ofNonZeroValue": (Overload((A,), _OPTIONAL, of_non_zero),),
        "optional.none": (Overload((), _OPTIONAL, lambda: NOTHING),),
        "optional.unwrap": (Overload((list_of(_OPTIONAL),), _LIST, unwrap),),
        "_[?_]": (
            Overload((_LIST, INT), _OPTIONAL, chosen),
            Overload((optional_of(_LIST), INT), _OPTIONAL, chosen),
            Overload((_MAP, A), optional_of(B), chosen),
            Overload((optional_of(_MAP), A), optional_of(B), chosen),
        ),
        "_[_]": (
            Overload((optional_of(_LIST), INT), _OPTIONAL, chosen),
            Overload((optional_of(_MAP), A), optional_of(B), chosen),
        ),
    },
    methods={
        "value": (Overload((_OPTIONAL,), A, lambda optional: optional.value),),
        "hasValue": (Overload((_OPTIONAL,), BOOL, lambda optional: optional.present),),
        "or": (
            Overload(
                (_OPTIONAL, _OPTIONAL), _OPTIONAL, lambda one, other: one if one.present else other
            ),
        ),
        "orValue": (
            Overload((_OPTIONAL, A), A, lambda one, other: one.value if one.present else other),
        ),
        "unwrapOpt": (Overload((list_of(_OPTIONAL),), _LIST, unwrap),),
        "first": (Overload((_LIST,), _OPTIONAL, first),),
        "last": (Overload((_LIST,), _OPTIONAL, last),),
    },
)
