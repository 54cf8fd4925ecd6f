"""Conversions between types (github.com/google/cel-go v0.26.0, common/types)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.library.overload import Library, Overload
from dra_driver.selector.library.times import (
    duration_text,
    parse_duration,
    parse_timestamp,
    timestamp_of,
    timestamp_text,
)
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
)
from dra_driver.selector.values import (
    INT64_MAX,
    INT64_MIN,
    UINT64_MAX,
    Duration,
    Timestamp,
    Uint,
    Value,
    kind,
)

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_INT: Final = re.compile(r"[+-]?[0-9]{1,4000}")
_UINT: Final = re.compile(r"[0-9]{1,4000}")
_DIGITS: Final = r"[0-9]+(?:_[0-9]+)*"
_DOUBLE: Final = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?"
    r"|[+-]?inf(?:inity)?|nan",
    re.IGNORECASE,
)


def to_int(value: Value) -> int:
    if type(value) is str:
        return _ranged("int", int(value) if _INT.fullmatch(value) else None, value)
    if type(value) is float:
        # Upstream leaves the last representable doubles out: they may be rounded ones.
        fits = math.isfinite(value) and INT64_MIN < value < INT64_MAX
        return _ranged("int", int(value) if fits else None, value)
    if type(value) is Duration:
        return value.nanoseconds
    if type(value) is Timestamp:
        return value.nanoseconds // 10**9
    return _ranged("int", int(value), value)


def to_uint(value: Value) -> Uint:
    number: int | None
    if type(value) is str:
        number = int(value) if _UINT.fullmatch(value) else None
    elif type(value) is float:
        number = int(value) if math.isfinite(value) and 0 <= value < UINT64_MAX else None
    else:
        number = int(value)
    if number is None or not 0 <= number <= UINT64_MAX:
        raise _failed("uint", value)
    return Uint(number)


def to_double(value: Value) -> float:
    if type(value) is not str:
        return float(value)
    if value.lstrip("+-")[:2].lower() == "0x":
        raise RefusedError("a hexadecimal double is not supported")
    if not _DOUBLE.fullmatch(value):
        raise _failed("double", value)
    number = float(value)
    if math.isinf(number) and "n" not in value.lower():
        raise _failed("double", value)  # digits that amount to infinity are out of range
    return number


def to_bool(value: Value) -> bool:
    if type(value) is bool:
        return value
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise _failed("bool", value)


def to_bytes(value: Value) -> bytes:
    return value.encode() if type(value) is str else bytes(value)


def text_of(value: Value) -> str:
    """``string()``. Raises EvaluationError for what has no text."""
    show = _TEXTS.get(type(value))
    if show is None:
        raise _failed("string", value)
    return show(value)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from error


def _general(value: float) -> str:
    """Go's %g: the shortest digits that tell the number, with an exponent from 1e+06 on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    shortest = Decimal(repr(value)).normalize()
    power = shortest.adjusted()
    if value == 0.0 or -4 <= power < 6:
        return f"{shortest:f}"
    sign, digits, _ = shortest.as_tuple()
    first, rest = digits[0], "".join(map(str, digits[1:]))
    return f"{'-' * sign}{first}{'.' if rest else ''}{rest}e{power:+03d}"


def _ranged(name: str, number: int | None, value: Value) -> int:
    if number is None or not INT64_MIN <= number <= INT64_MAX:
        raise _failed(name, value)
    return number


def _failed(name: str, value: Value) -> EvaluationError:
    shown = repr(value) if isinstance(value, str | int | float) else f"a {kind(value)}"
    return EvaluationError(f"{shown} cannot be converted to {name}")


_TEXTS: Final[dict[type, Callable[[Any], str]]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    int: str,
    Uint: int.__repr__,
    float: _general,
    bytes: _decoded,
    Duration: duration_text,
    Timestamp: timestamp_text,
}

LIBRARY: Final = Library(
    functions={
        "int": tuple(
            Overload((each,), INT, to_int)
            for each in (INT, DOUBLE, DURATION, STRING, TIMESTAMP, UINT)
        ),
        "uint": tuple(Overload((each,), UINT, to_uint) for each in (UINT, DOUBLE, INT, STRING)),
        "double": tuple(
            Overload((each,), DOUBLE, to_double) for each in (DOUBLE, INT, STRING, UINT)
        ),
        "bool": tuple(Overload((each,), BOOL, to_bool) for each in (BOOL, STRING)),
        "bytes": tuple(Overload((each,), BYTES, to_bytes) for each in (BYTES, STRING)),
        "string": tuple(
            Overload((each,), STRING, text_of)
            for each in (STRING, BOOL, BYTES, DOUBLE, DURATION, INT, TIMESTAMP, UINT)
        ),
        "duration": (
            Overload((DURATION,), DURATION, lambda value: value),
            Overload((INT,), DURATION, Duration),
            Overload((STRING,), DURATION, parse_duration),
        ),
        "timestamp": (
            Overload((TIMESTAMP,), TIMESTAMP, lambda value: value),
            Overload((INT,), TIMESTAMP, timestamp_of),
            Overload((STRING,), TIMESTAMP, parse_timestamp),
        ),
        "dyn": (Overload((A,), DYN, lambda value: value),),
    },
    methods={},
)
