"""Kubernetes quantities (k8s.io/apimachinery, package resource) as exact fractions.

The official client has a parser too, but only one file of the project may import it, and this
room is the standard library's alone.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from dra_driver.model.errors import InvalidValue

_BINARY: Final[dict[str, int]] = {
    s: 1024**n for n, s in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)
}
_DECIMAL: Final[dict[str, Fraction]] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{s: Fraction(1000**n) for n, s in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
}
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))"
    r"(?:(?P<binary>[KMGTPE]i)|[eE](?P<exponent>[+-]?\d{1,2})|(?P<decimal>[numkMGTPE]?))"
)


def parse_quantity(text: str) -> Fraction:
    """The exact value of a quantity such as ``6``, ``500m``, ``42976Mi`` or ``1e3``.

    Raises InvalidValue for anything else.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise InvalidValue(
            f"{text!r} is not a quantity", remedy="write a number with a suffix, as in 6 or 40Gi"
        )
    number = Fraction(match["number"])
    if match["binary"]:
        return number * _BINARY[match["binary"]]
    if match["exponent"]:
        return number * Fraction(f"1e{match['exponent']}")
    return number * _DECIMAL[match["decimal"] or ""]


def format_quantity(value: Fraction) -> str:
    """The value as a quantity: a whole number where it is one, else in thousandths and below.

    Raises InvalidValue below a nano, which the API cannot write.
    """
    for suffix in ("", "m", "u", "n"):
        scaled = value / _DECIMAL[suffix]
        if scaled.denominator == 1:
            return f"{scaled.numerator}{suffix}"
    raise InvalidValue(f"{value} is finer than a quantity can say")
