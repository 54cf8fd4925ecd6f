"""Quantities (k8s.io/apiserver, pkg/cel/library/quantity.go; k8s.io/apimachinery, api/resource).

`dra_driver.model.quantity` reads what the API server has written; this reads whatever a person
may write into a selector, and keeps what ``isInteger()`` looks at.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.library.overload import Library, Overload
from dra_driver.selector.types import BOOL, DOUBLE, INT, QUANTITY, STRING
from dra_driver.selector.values import INT64_MAX, INT64_MIN, Opaque, Value

_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)0*(?P<number>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+)"
)
_BINARY: Final = {f"{prefix}i": 10 * n for n, prefix in enumerate("KMGTPE", 1)}
_DECIMAL: Final = {suffix: 3 * n for n, suffix in enumerate(("n", "u", "m", "", *"kMGTPE"), -3)}
_NANO: Final = -9
_MOST_DIGITS: Final = 1_000
"""Of a number or as an exponent. More mean nothing, and would fill the memory."""


@dataclass(frozen=True, slots=True)
class Quantity(Opaque):
    """An exact amount. Two quantities are equal when their amounts are, however written.

    `scale` is the power of ten of which upstream keeps a 64-bit number, or None where it keeps a
    decimal of any length: ``isInteger()`` is false for a decimal even where it is whole. What
    add() and sub() have `computed` equals nothing where it stands on the right: upstream hands a
    pointer out there, which its comparison does not recognise.
    """

    amount: Fraction
    scale: int | None
    computed: bool = False

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Raises EvaluationError for a text that is no quantity, RefusedError for an absurd one."""
        found = _QUANTITY.fullmatch(text)
        if found is None or not text:
            raise EvaluationError(f"{text!r} is not a quantity")
        number, fraction, suffix = found["number"] or "0", found["fraction"] or "", found["suffix"]
        if len(number + fraction) > _MOST_DIGITS or len(suffix) > 5:
            raise RefusedError("a quantity with that many digits is not supported")
        digits = int(number + fraction)
        sign = -1 if found["sign"] == "-" else 1
        if suffix in _BINARY:
            return _binary(sign, digits, number, fraction, _BINARY[suffix])
        exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
        if abs(exponent) > _MOST_DIGITS:
            raise RefusedError(f"the exponent of the quantity {text!r} is not supported")
        scale = exponent - len(fraction)
        amount = sign * digits * _power(scale)
        if len(number) + len(fraction) <= 18 and scale >= _NANO:
            return cls(amount, scale)
        return cls(_to_nano(amount), None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def comparable(self, other: Value) -> bool:
        return isinstance(other, Quantity) and not other.computed

    @property
    def integer(self) -> int | None:
        """The value where upstream can tell it as an int64."""
        if self.scale is None or self.scale < 0 or not INT64_MIN <= self.amount <= INT64_MAX:
            return None
        return int(self.amount)


def _binary(sign: int, digits: int, number: str, fraction: str, exponent: int) -> Quantity:
    amount = Fraction(digits * 2**exponent, 10 ** len(fraction))
    precision = 15 - len(number) - exponent * 3 // 10 - 1
    if not fraction and precision >= 0:
        return Quantity(sign * amount, 0)
    return Quantity(sign * min(_to_nano(amount), Fraction(INT64_MAX)), None)


def _to_nano(amount: Fraction) -> Fraction:
    """Rounded away from zero to what a quantity can say."""
    steps = math.ceil(abs(amount) / _power(_NANO))
    return (steps if amount >= 0 else -steps) * _power(_NANO)


def _power(exponent: int) -> Fraction:
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)


def is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except EvaluationError:
        return False
    return True


def compare_to(left: Quantity, right: Quantity) -> int:
    return (left.amount > right.amount) - (left.amount < right.amount)


def add(left: Quantity, right: Quantity) -> Quantity:
    return Quantity(left.amount + right.amount, _common_scale(left, right), computed=True)


def sub(left: Quantity, right: Quantity) -> Quantity:
    if right.amount == INT64_MIN:
        raise RefusedError("to subtract the least integer from a quantity is not supported")
    return Quantity(left.amount - right.amount, _common_scale(left, right), computed=True)


def as_integer(value: Quantity) -> int:
    if value.integer is None:
        raise EvaluationError("cannot convert value to integer")
    return value.integer


def as_approximate_float(value: Quantity) -> float:
    """Rounded twice, as upstream does it: the number of a scale, then the scale."""
    scale = _NANO if value.scale is None else value.scale
    try:
        return float(value.amount / _power(scale)) * float(f"1e{scale}")
    except OverflowError:
        return math.inf if value.amount > 0 else -math.inf


def _common_scale(left: Quantity, right: Quantity) -> int | None:
    if left.scale is None or right.scale is None:
        return None
    if not right.amount:
        return left.scale
    return min(left.scale, right.scale) if left.amount else right.scale


def _whole(number: int) -> Quantity:
    return Quantity(Fraction(number), 0)


LIBRARY: Final = Library(
    functions={
        "quantity": (Overload((STRING,), QUANTITY, Quantity.parse),),
        "isQuantity": (Overload((STRING,), BOOL, is_quantity),),
        "sign": (
            Overload((QUANTITY,), INT, lambda value: (value.amount > 0) - (value.amount < 0)),
        ),
    },
    methods={
        "compareTo": (Overload((QUANTITY, QUANTITY), INT, compare_to),),
        "isLessThan": (Overload((QUANTITY, QUANTITY), BOOL, lambda a, b: a.amount < b.amount),),
        "isGreaterThan": (Overload((QUANTITY, QUANTITY), BOOL, lambda a, b: a.amount > b.amount),),
        "isInteger": (Overload((QUANTITY,), BOOL, lambda value: value.integer is not None),),
        "asInteger": (Overload((QUANTITY,), INT, as_integer),),
        "asApproximateFloat": (Overload((QUANTITY,), DOUBLE, as_approximate_float),),
        "add": (
            Overload((QUANTITY, QUANTITY), QUANTITY, add),
            Overload((QUANTITY, INT), QUANTITY, lambda value, n: add(value, _whole(n))),
        ),
        "sub": (
            Overload((QUANTITY, QUANTITY), QUANTITY, sub),
            Overload((QUANTITY, INT), QUANTITY, lambda value, n: sub(value, _whole(n))),
        ),
    },
)
