"""Kubernetes quantities (k8s.io/apimachinery, package api/resource, 1.36.3) as exact fractions.

The official client has a parser too, but only one file of the project may import it, and this
package is the standard library's alone.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dra_driver.model.errors import InvalidValue

_BINARY: Final[dict[str, int]] = {
    suffix: 1024**power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)
}
_DECIMAL: Final[dict[str, Fraction]] = {
    suffix: Fraction(1000) ** power
    for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}
_FINEST: Final = _DECIMAL["n"]
_MOST_BINARY: Final = 2**63 - 1  # upstream's maxAllowed, which caps binary quantities only
_LONGEST: Final = 400  # characters; Python itself reads no number of some thousand digits
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<binary>[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,2})|(?P<decimal>[numkMGTPE]?))"
)


# Claims, limits and devices have few different amounts, many times each.
@lru_cache(4096)
def parse_quantity(text: str) -> Fraction:
    """The value of a quantity such as ``6``, ``500m``, ``42976Mi`` or ``1e3``, as upstream holds
    it: rounded away from zero to a nano, binary ones within 63 bits.

    Raises InvalidValue for anything else; that includes what upstream's scanner takes for 0
    because it forgets to look for a digit (``.``, ``Ki``), exponents of more than two digits, and
    what is longer than any amount.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise InvalidValue(
            f"{text[:_LONGEST]!r} is not a quantity",
            remedy="write a number with a suffix, as in 6 or 40Gi",
        )
    number = Fraction(match["number"])
    if match["binary"]:
        number *= _BINARY[match["binary"]]
        number = max(-Fraction(_MOST_BINARY), min(number, Fraction(_MOST_BINARY)))
    elif match["exponent"]:
        number *= Fraction(10) ** int(match["exponent"])
    else:
        number *= _DECIMAL[match["decimal"]]
    away = math.ceil if number > 0 else math.floor
    return away(number / _FINEST) * _FINEST


def format_binary(value: int) -> str:
    """The quantity in the canonical form in which the API server writes a binary one back: the
    largest suffix of Ki, Mi, … without a fraction."""
    for suffix, size in reversed(_BINARY.items()):
        if value and value % size == 0:
            return f"{value // size}{suffix}"
    return str(value)
