"""CEL's operators on values, as Kubernetes configures them (cross-type numeric comparison).

cel-python's own operators mix Python's rules in (``1 / 2`` of doubles and ints, ``True == 1``),
so each is written out here over its value types. All raise EvaluationError for types that CEL
has no overload for.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from celpy import celtypes

from dra_driver.selector.errors import EvaluationError

Value = Any  # a value of celpy.celtypes, None, or a Quantity

_INT64: Final = (-(2**63), 2**63 - 1)
_UINT64: Final = (0, 2**64 - 1)
_NUMBERS: Final = (celtypes.IntType, celtypes.UintType, celtypes.DoubleType)


def no_overload(name: str, *values: Value) -> EvaluationError:
    kinds = ", ".join(type(value).__name__.removesuffix("Type").lower() for value in values)
    return EvaluationError(f"no such overload: {name}({kinds})")


def is_number(value: Value) -> bool:
    return type(value) in _NUMBERS


def equal(left: Value, right: Value) -> bool:
    """Values of different types differ, without an error; numbers compare by what they count."""
    if is_number(left) and is_number(right):
        return bool(_number(left) == _number(right))
    if type(left) is not type(right):
        return False
    if isinstance(left, celtypes.ListType):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, celtypes.MapType):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, celtypes.BoolType | celtypes.StringType):
        return bool(_plain(left) == _plain(right))
    return bool(left == right)


def compare(name: str, left: Value, right: Value) -> bool:
    """``<``, ``<=``, ``>`` and ``>=``."""
    ordered = _ORDERS[name]
    if is_number(left) and is_number(right):
        return ordered(_number(left), _number(right))
    if type(left) is type(right) and isinstance(left, celtypes.BoolType | celtypes.StringType):
        return ordered(_plain(left), _plain(right))
    raise no_overload(name, left, right)


def contained(item: Value, container: Value) -> bool:
    """``item in container``, for lists and for the keys of maps."""
    if isinstance(container, celtypes.ListType | celtypes.MapType):
        return any(equal(item, each) for each in container)
    raise no_overload("in", item, container)


def index(container: Value, key: Value) -> Value:
    """``container[key]``."""
    if isinstance(container, celtypes.MapType):
        for each in container:
            if equal(each, key):
                return container[each]
        raise EvaluationError(f"no such key: {key}")
    if isinstance(container, celtypes.ListType) and is_number(key):
        if key < 0 or key >= len(container) or key != int(key):
            raise EvaluationError(f"index out of bounds: {key}")
        return container[int(key)]
    raise no_overload("[]", container, key)


def arithmetic(name: str, left: Value, right: Value) -> Value:
    """``+ - * / %`` of two values of one type."""
    if type(left) is not type(right):
        raise no_overload(name, left, right)
    if isinstance(left, celtypes.IntType):
        return celtypes.IntType(_bounded(_integer(name, int(left), int(right)), _INT64))
    if isinstance(left, celtypes.UintType):
        return celtypes.UintType(_bounded(_integer(name, int(left), int(right)), _UINT64))
    if isinstance(left, celtypes.DoubleType) and name != "%":
        return celtypes.DoubleType(_double(name, float(left), float(right)))
    if name == "+" and isinstance(left, celtypes.StringType):
        return celtypes.StringType(_plain(left) + _plain(right))
    if name == "+" and isinstance(left, celtypes.ListType):
        return celtypes.ListType([*left, *right])
    raise no_overload(name, left, right)


def negate(value: Value) -> Value:
    if type(value) is celtypes.IntType:
        return celtypes.IntType(_bounded(-int(value), _INT64))
    if type(value) is celtypes.DoubleType:
        return celtypes.DoubleType(-float(value))
    raise no_overload("-", value)


_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_PLAIN_ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def _number(value: Value) -> int | float:
    return float(value) if isinstance(value, celtypes.DoubleType) else int(value)


def _plain(value: Value) -> Any:
    return bool(value) if isinstance(value, celtypes.BoolType) else str(value)


def _integer(name: str, left: int, right: int) -> int:
    if name in {"/", "%"}:
        if right == 0:
            raise EvaluationError("divide by zero" if name == "/" else "modulus by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if name == "/" else left - quotient * right  # truncates as Go does
    result: int = _PLAIN_ARITHMETIC[name](left, right)
    return result


def _bounded(value: int, limits: tuple[int, int]) -> int:
    if not limits[0] <= value <= limits[1]:
        raise EvaluationError("integer overflow")
    return value


def _double(name: str, left: float, right: float) -> float:
    if name == "/":
        if right == 0.0:  # IEEE 754, where Python raises
            same_sign = math.copysign(1.0, left) == math.copysign(1.0, right)
            if left == 0.0 or math.isnan(left):
                return math.nan
            return math.inf if same_sign else -math.inf
        return left / right
    result: float = _PLAIN_ARITHMETIC[name](left, right)
    return result
