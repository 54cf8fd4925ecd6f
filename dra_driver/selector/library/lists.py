"""Functions of lists (k8s.io/apiserver, pkg/cel/library/lists.go; github.com/google/cel-go
v0.26.0, ext/lists.go version 3; k8s.io/dynamic-resource-allocation, cel/compile.go)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from dra_driver.selector.errors import EvaluationError
from dra_driver.selector.library.operators import LIBRARY as OPERATORS
from dra_driver.selector.library.operators import surely_equal
from dra_driver.selector.library.overload import Library, Overload
from dra_driver.selector.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    list_of,
    map_of,
)
from dra_driver.selector.values import Duration, Uint, Value, compare, has_order, no_overload

_LONGEST_INCLUDES: Final = 48  # resource.k8s.io/v1, ResourceSliceMaxAttributeValuesPerDevice
_COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
_ZEROS: Final = {INT: 0, UINT: Uint(0), DOUBLE: 0.0, DURATION: Duration(0)}


def size(value: Value) -> int:
    """Code points of a string, bytes, or the entries of a list or map."""
    return len(value)


def includes(target: Value, item: Value) -> bool:
    """Whether a list has the item, or a single value is it."""
    if not isinstance(target, list):
        return surely_equal(target, item)
    for position, each in enumerate(target):
        if position >= _LONGEST_INCLUDES:
            raise EvaluationError(f"includes: a list of more than {_LONGEST_INCLUDES} values")
        if surely_equal(each, item):
            return True
    return False


def is_sorted(values: list[Value]) -> bool:
    return all(_order(a, b) <= 0 for a, b in pairwise(values))


def least(values: list[Value]) -> Value:
    return _extreme("min", values, -1)


def greatest(values: list[Value]) -> Value:
    return _extreme("max", values, 1)


def _extreme(name: str, values: list[Value], sign: int) -> Value:
    if not values:
        raise EvaluationError(f"{name} called on empty list")
    best = values[0]
    for value in values[1:]:
        if _order(best, value) == -sign:
            best = value
    return best


def _order(left: Value, right: Value) -> int:
    """-1, 0 or 1; 0 also where the two cannot be compared, as `isSorted` and `cmp` of upstream's
    pkg/cel/library/lists.go pass by what Compare reports. Raises EvaluationError if the right
    value is of a type without any order."""
    if not has_order(right):
        raise no_overload("<", left, right)
    try:
        return compare(left, right)
    except EvaluationError:
        return 0


def total(zero: Value, add: Callable[[Value, Value], Value]) -> Callable[[list[Value]], Value]:
    """The function that adds up a list of values of the zero's type."""

    def add_up(values: list[Value]) -> Value:
        result = zero
        for value in values:
            if type(value) is not type(zero):
                raise no_overload("sum", zero, value)
            result = add(result, value)
        return result

    return add_up


def index_of(values: list[Value], item: Value) -> int:
    return next((n for n, each in enumerate(values) if surely_equal(each, item)), -1)


def last_index_of(values: list[Value], item: Value) -> int:
    backwards = range(len(values) - 1, -1, -1)
    return next((n for n in backwards if surely_equal(values[n], item)), -1)


def slice_of(values: list[Value], start: int, end: int) -> list[Value]:
    if not 0 <= start <= end <= len(values):
        raise EvaluationError(f"cannot slice({start}, {end}) a list of {len(values)}")
    return values[start:end]


def flatten(values: list[Value], depth: int = 1) -> list[Value]:
    if depth < 0:
        raise EvaluationError("flatten: the level must not be negative")
    found: list[Value] = []
    for value in values:
        nested = isinstance(value, list) and depth > 0
        found.extend(flatten(value, depth - 1) if nested else [value])
    return found


def distinct(values: list[Value]) -> list[Value]:
    found: list[Value] = []
    for value in values:
        if index_of(found, value) < 0:
            found.append(value)
    return found


def in_order(values: list[Value], keys: list[Value]) -> list[Value]:
    """The values by their keys, which must be of one type that has an order."""
    if keys and not has_order(keys[0]):
        raise EvaluationError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")
    by_key = cmp_to_key(compare)
    order = sorted(range(len(values)), key=lambda n: by_key(keys[n]))
    return [values[n] for n in order]


def sorting(values: list[Value]) -> int:
    """What it costs to bring so many values into an order: a comparison costs two steps."""
    return 2 * len(values) * len(values).bit_length()


def _square(values: list[Value]) -> int:
    return 2 * len(values) ** 2


_LIST: Final = list_of(A)
_SIZED: Final = (STRING, BYTES, _LIST, map_of(A, B))

LIBRARY: Final = Library(
    functions={
        "size": tuple(Overload((each,), INT, size, dynamic=True) for each in _SIZED),
        "lists.range": (
            Overload((INT,), list_of(INT), lambda n: [*range(n)], work=lambda n: max(n, 0)),
        ),
    },
    methods={
        "size": tuple(Overload((each,), INT, size, dynamic=True) for each in _SIZED),
        "includes": (Overload((DYN, DYN), BOOL, includes),),
        "isSorted": tuple(Overload((list_of(each),), BOOL, is_sorted) for each in _COMPARABLE),
        "min": tuple(Overload((list_of(each),), each, least) for each in _COMPARABLE),
        "max": tuple(Overload((list_of(each),), each, greatest) for each in _COMPARABLE),
        "sum": tuple(
            Overload((list_of(plus.result),), plus.result, total(_ZEROS[plus.result], plus.compute))
            for plus in OPERATORS.functions["_+_"]
            if plus.arguments == (plus.result, plus.result) and plus.result in _ZEROS
        ),
        "indexOf": (Overload((_LIST, A), INT, index_of),),
        "lastIndexOf": (Overload((_LIST, A), INT, last_index_of),),
        "slice": (Overload((_LIST, INT, INT), _LIST, slice_of),),
        "flatten": (
            Overload((list_of(_LIST),), _LIST, flatten, accepts=(_LIST,)),
            Overload((list_of(DYN), INT), list_of(DYN), flatten),
        ),
        "distinct": (Overload((_LIST,), _LIST, distinct, work=_square),),
        "reverse": (Overload((_LIST,), _LIST, lambda values: values[::-1]),),
        "sort": tuple(
            Overload(
                (list_of(each),),
                list_of(each),
                lambda values: in_order(values, values),
                dynamic=True,
                work=sorting,
            )
            for each in _COMPARABLE
        ),
    },
)
