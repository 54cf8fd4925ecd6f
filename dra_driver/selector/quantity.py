"""Kubernetes' quantity library for CEL (k8s.io/apiserver, package cel/library, quantity.go)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from celpy import celtypes

from dra_driver.model.errors import InvalidValue
from dra_driver.model.quantity import parse_quantity
from dra_driver.selector.errors import EvaluationError

_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact amount. Two quantities are equal when their amounts are, however written."""

    amount: Fraction

    @classmethod
    def parse(cls, text: str) -> Quantity:
        try:
            return cls(parse_quantity(text))
        except InvalidValue as error:
            raise EvaluationError(str(error)) from error


def quantity(text: object) -> Quantity:
    return Quantity.parse(_string(text))


def is_quantity(text: object) -> celtypes.BoolType:
    try:
        parse_quantity(_string(text))
    except InvalidValue:
        return celtypes.BoolType(False)
    return celtypes.BoolType(True)


def compare_to(left: object, right: object) -> celtypes.IntType:
    return _sign(_amount(left) - _amount(right))


def is_greater_than(left: object, right: object) -> celtypes.BoolType:
    return celtypes.BoolType(_amount(left) > _amount(right))


def is_less_than(left: object, right: object) -> celtypes.BoolType:
    return celtypes.BoolType(_amount(left) < _amount(right))


def add(left: object, right: object) -> Quantity:
    return Quantity(_amount(left) + _amount_or_int(right))


def sub(left: object, right: object) -> Quantity:
    return Quantity(_amount(left) - _amount_or_int(right))


def sign(value: object) -> celtypes.IntType:
    return _sign(_amount(value))


def is_integer(value: object) -> celtypes.BoolType:
    return celtypes.BoolType(_fits_int64(_amount(value)))


def as_integer(value: object) -> celtypes.IntType:
    amount = _amount(value)
    if not _fits_int64(amount):
        raise EvaluationError("cannot convert value to integer")
    return celtypes.IntType(int(amount))


def as_approximate_float(value: object) -> celtypes.DoubleType:
    return celtypes.DoubleType(float(_amount(value)))


def _sign(amount: Fraction) -> celtypes.IntType:
    return celtypes.IntType((amount > 0) - (amount < 0))


def _fits_int64(amount: Fraction) -> bool:
    return amount.denominator == 1 and abs(amount) <= _INT64_MAX


def _amount(value: object) -> Fraction:
    if not isinstance(value, Quantity):
        raise EvaluationError("no such overload: a quantity is needed")
    return value.amount


def _amount_or_int(value: object) -> Fraction:
    return Fraction(int(value)) if type(value) is celtypes.IntType else _amount(value)


def _string(value: object) -> str:
    if not isinstance(value, celtypes.StringType):
        raise EvaluationError("no such overload: quantity takes a string")
    return str(value)
