"""Operators (github.com/google/cel-go v0.26.0, common/stdlib), with Kubernetes' comparison of
numbers across types."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, Final

from dra_driver.selector.errors import EvaluationError
from dra_driver.selector.library.overload import Library, Overload
from dra_driver.selector.library.times import timestamp_of
from dra_driver.selector.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    Type,
    list_of,
    map_of,
)
from dra_driver.selector.values import (
    INT64_MAX,
    INT64_MIN,
    UINT64_MAX,
    Duration,
    Timestamp,
    Uint,
    Value,
    compare,
    equal,
    map_key,
    no_overload,
)

_NUMBERS: Final = (INT, UINT, DOUBLE)
_ORDERED: Final = (
    *product(_NUMBERS, _NUMBERS),
    *((each, each) for each in (BOOL, STRING, BYTES, TIMESTAMP, DURATION)),
)
_INDEXES: Final = frozenset({int, Uint, float})


def surely_equal(left: Value, right: Value) -> bool:
    """Whether they are equal; what cannot be compared is not."""
    try:
        return equal(left, right)
    except EvaluationError:
        return False


def not_equal(left: Value, right: Value) -> bool:
    """``!=``: upstream asks whether it is anything but equal, and so there is no error."""
    return not surely_equal(left, right)


def contained(item: Value, container: Value) -> bool:
    """``item in container``, for lists and for the keys of maps."""
    if isinstance(container, dict):
        return _known(container, item)
    if not isinstance(container, list):
        raise no_overload("in", item, container)
    return any(surely_equal(item, each) for each in container)


def index(container: Value, key: Value) -> Value:
    """``container[key]``."""
    if isinstance(container, dict):
        try:
            return container[map_key(key)]
        except KeyError:
            raise EvaluationError(f"no such key: {key}") from None
    if isinstance(container, list) and type(key) in _INDEXES:
        if key != key // 1 or not 0 <= key < len(container):
            raise EvaluationError(f"index out of bounds: {key}")
        return container[int(key)]
    raise no_overload("[]", container, key)


def _known(container: dict[Value, Value], key: Value) -> bool:
    try:
        return map_key(key) in container
    except EvaluationError:
        return False


def _int(number: int) -> int:
    if not INT64_MIN <= number <= INT64_MAX:
        raise EvaluationError("integer overflow")
    return number


def _uint(number: int) -> Uint:
    if not 0 <= number <= UINT64_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    quotient = _quotient(left, right)
    if quotient > INT64_MAX and right == -1:
        raise EvaluationError("integer overflow")  # of the division, though the remainder fits
    return left - right * quotient


def _double_quotient(left: float, right: float) -> float:
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _double(compute: Callable[[float, float], float]) -> Overload:
    return Overload((DOUBLE, DOUBLE), DOUBLE, compute)


def _integers(compute: Callable[[int, int], int]) -> tuple[Overload, Overload]:
    return (
        Overload((INT, INT), INT, lambda a, b: _int(compute(a, b))),
        Overload((UINT, UINT), UINT, lambda a, b: _uint(compute(int(a), int(b)))),
    )


def _same(kinds: tuple[Type, ...], compute: Callable[[Any, Any], Any]) -> tuple[Overload, ...]:
    return tuple(Overload((each, each), each, compute) for each in kinds)


def _ordering(holds: Callable[[int, int], bool]) -> tuple[Overload, ...]:
    return tuple(Overload(pair, BOOL, lambda a, b: holds(compare(a, b), 0)) for pair in _ORDERED)


def _moved(sign: int) -> Callable[[Timestamp, Duration], Timestamp]:
    def move(time: Timestamp, by: Duration) -> Timestamp:
        nanoseconds = time.nanoseconds + sign * by.nanoseconds
        timestamp_of(nanoseconds // 10**9)  # which refuses what is out of range
        return Timestamp(nanoseconds, time.offset)

    return move


def _longer(sign: int) -> Callable[[Duration, Duration], Duration]:
    return lambda a, b: Duration(_int(a.nanoseconds + sign * b.nanoseconds))


_OPERATORS: Final[dict[str, tuple[Overload, ...]]] = {
    "_==_": (Overload((A, A), BOOL, equal),),
    "_!=_": (Overload((A, A), BOOL, not_equal),),
    "_<_": _ordering(operator.lt),
    "_<=_": _ordering(operator.le),
    "_>_": _ordering(operator.gt),
    "_>=_": _ordering(operator.ge),
    "@in": (
        Overload((A, list_of(A)), BOOL, contained),
        Overload((A, map_of(A, B)), BOOL, contained),
    ),
    "_[_]": (
        Overload((list_of(A), INT), A, index),
        Overload((map_of(A, B), A), B, index),
    ),
    "!_": (Overload((BOOL,), BOOL, operator.not_),),
    "-_": (
        Overload((INT,), INT, lambda value: _int(-value)),
        Overload((DOUBLE,), DOUBLE, operator.neg),
    ),
    "_+_": (
        *_integers(operator.add),
        _double(operator.add),
        *_same((STRING, BYTES, list_of(A)), operator.add),
        Overload((DURATION, DURATION), DURATION, _longer(1)),
        Overload((TIMESTAMP, DURATION), TIMESTAMP, _moved(1)),
        Overload((DURATION, TIMESTAMP), TIMESTAMP, lambda by, time: _moved(1)(time, by)),
    ),
    "_-_": (
        *_integers(operator.sub),
        _double(operator.sub),
        Overload((DURATION, DURATION), DURATION, _longer(-1)),
        Overload((TIMESTAMP, DURATION), TIMESTAMP, _moved(-1)),
        Overload(
            (TIMESTAMP, TIMESTAMP),
            DURATION,
            lambda a, b: Duration(_int(a.nanoseconds - b.nanoseconds)),
        ),
    ),
    "_*_": (*_integers(operator.mul), _double(operator.mul)),
    "_/_": (*_integers(_quotient), _double(_double_quotient)),
    "_%_": _integers(_remainder),
}

LIBRARY: Final = Library(
    functions={
        name: tuple(replace(each, dynamic=True) for each in overloads)
        for name, overloads in _OPERATORS.items()
    },
    methods={},
)
