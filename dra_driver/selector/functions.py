"""The functions and methods that a selector may call. Whatever is not listed is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from celpy import celtypes
from celpy.evaluation import CELEvalError, function_matches

from dra_driver.selector import quantity
from dra_driver.selector.errors import EvaluationError
from dra_driver.selector.operators import Value, equal, no_overload

_LONGEST_INCLUDES = 64  # resource.k8s.io/v1, ResourceSliceMaxAttributeValuesPerDevice


def size(value: Value) -> celtypes.IntType:
    """Code points of a string, entries of a list or map."""
    if isinstance(value, celtypes.StringType | celtypes.ListType | celtypes.MapType):
        return celtypes.IntType(len(value))
    raise no_overload("size", value)


def includes(target: Value, item: Value) -> celtypes.BoolType:
    """Whether a list has the item, or a single value is it."""
    if not isinstance(target, celtypes.ListType):
        return celtypes.BoolType(equal(target, item))
    if len(target) > _LONGEST_INCLUDES:
        raise EvaluationError(f"includes: a list of more than {_LONGEST_INCLUDES} values")
    return celtypes.BoolType(any(equal(each, item) for each in target))


def matches(text: Value, pattern: Value) -> celtypes.BoolType:
    """Whether the RE2 `pattern` is found anywhere in `text`."""
    _strings("matches", text, pattern)
    found = function_matches(str(text), str(pattern))
    if isinstance(found, CELEvalError):
        raise EvaluationError(f"matches: {pattern!r} is not a regular expression") from found
    return celtypes.BoolType(bool(found))


def contains(text: Value, part: Value) -> celtypes.BoolType:
    _strings("contains", text, part)
    return celtypes.BoolType(str(part) in str(text))


def starts_with(text: Value, part: Value) -> celtypes.BoolType:
    _strings("startsWith", text, part)
    return celtypes.BoolType(str(text).startswith(str(part)))


def ends_with(text: Value, part: Value) -> celtypes.BoolType:
    _strings("endsWith", text, part)
    return celtypes.BoolType(str(text).endswith(str(part)))


def lower_ascii(text: Value) -> celtypes.StringType:
    _strings("lowerAscii", text)
    return celtypes.StringType("".join(c.lower() if c.isascii() else c for c in str(text)))


def upper_ascii(text: Value) -> celtypes.StringType:
    _strings("upperAscii", text)
    return celtypes.StringType("".join(c.upper() if c.isascii() else c for c in str(text)))


def dyn(value: Value) -> Value:
    """Tells a type checker to stay quiet; there is none here."""
    return value


def _strings(name: str, *values: Value) -> None:
    if not all(isinstance(value, celtypes.StringType) for value in values):
        raise no_overload(name, *values)


Function = Callable[..., Value]

# Name to function and number of arguments; a method's receiver counts as one.
FUNCTIONS: Final[dict[str, tuple[Function, int]]] = {
    "size": (size, 1),
    "dyn": (dyn, 1),
    "quantity": (quantity.quantity, 1),
    "isQuantity": (quantity.is_quantity, 1),
}
METHODS: Final[dict[str, tuple[Function, int]]] = {
    "size": (size, 1),
    "includes": (includes, 2),
    "matches": (matches, 2),
    "contains": (contains, 2),
    "startsWith": (starts_with, 2),
    "endsWith": (ends_with, 2),
    "lowerAscii": (lower_ascii, 1),
    "upperAscii": (upper_ascii, 1),
    "compareTo": (quantity.compare_to, 2),
    "isGreaterThan": (quantity.is_greater_than, 2),
    "isLessThan": (quantity.is_less_than, 2),
    "add": (quantity.add, 2),
    "sub": (quantity.sub, 2),
    "sign": (quantity.sign, 1),
    "isInteger": (quantity.is_integer, 1),
    "asInteger": (quantity.as_integer, 1),
    "asApproximateFloat": (quantity.as_approximate_float, 1),
}
