"""``format()`` of strings (github.com/google/cel-go v0.26.0, ext/formatting.go)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.library.conversions import text_of
from dra_driver.selector.values import Duration, Timestamp, Uint, Value, key_value, kind

_CLAUSE: Final = re.compile(
    r"%(?:(?P<percent>%)|(?:\.(?P<precision>[0-9]+))?(?P<verb>.?))", re.DOTALL
)
_MOST_DIGITS: Final = 1_000
_PRECISION: Final = 6
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NO_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

Verb = Callable[[Value, int | None], str]


def format_string(text: str, values: list[Value]) -> str:
    """The text with each clause replaced by the value in its turn."""
    pending = iter(values)

    def clause(found: re.Match[str]) -> str:
        if found["percent"]:
            return "%"
        try:
            value = next(pending)
        except StopIteration:
            raise EvaluationError(f"format: there is no value for {found[0]!r}") from None
        verb = _VERBS.get(found["verb"])
        if verb is None:
            raise EvaluationError(f"format: unrecognized clause {found[0]!r}")
        return verb(value, _precision(found["precision"]))

    return _CLAUSE.sub(clause, text)


def clauses(text: str) -> list[str]:
    """The verbs of a format, in order; raises EvaluationError for one that is not known."""
    verbs = [found["verb"] for found in _CLAUSE.finditer(text) if not found["percent"]]
    for verb in verbs:
        if verb not in _VERBS:
            raise EvaluationError(f"format: unrecognized clause %{verb}")
    return verbs


def _precision(digits: str | None) -> int | None:
    if digits is None:
        return None
    if len(digits) > 4 or int(digits) > _MOST_DIGITS:
        raise RefusedError(f"a precision of more than {_MOST_DIGITS} digits is not supported")
    return int(digits)


def _string(value: Value, _precision: int | None) -> str:
    if value is None:
        return "null"
    if type(value) is list:
        return f"[{', '.join(map(_element, value))}]"
    if isinstance(value, dict):
        entries = sorted((_element(key_value(key)), _element(each)) for key, each in value.items())
        return "{" + ", ".join(f"{key}:{each}" for key, each in entries) + "}"
    return text_of(value)


def _element(value: Value) -> str:
    """A value inside a list or a map, written as CEL would write it."""
    if type(value) is str:
        return _go_quoted(value)
    if type(value) is bytes:
        return f"b{_go_quoted(text_of(value))}"
    if type(value) is float:
        return f"{value:.6f}" if math.isfinite(value) else f'"{text_of(value)}"'
    if type(value) is Timestamp:
        return f'timestamp("{text_of(value)}")'
    if type(value) is Duration:
        return f'duration("{text_of(value)}")'
    return _string(value, None)


def _go_quoted(text: str) -> str:
    """Go's %q."""
    return f'"{"".join(map(_go_escaped, text))}"'


def _go_escaped(character: str) -> str:
    if character in _GO_ESCAPES:
        return _GO_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_GO_ESCAPES: Final = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
    "\\": r"\\", '"': r"\"",
}  # fmt: skip


def _decimal(value: Value, _precision: int | None) -> str:
    if type(value) is int or type(value) is Uint:
        return str(int(value))
    raise _wrong("d", value)


def _double(verb: str, value: Value) -> float:
    if type(value) is float:
        return value
    if type(value) is str and value in _NO_NUMBERS:
        return _NO_NUMBERS[value]
    raise _wrong(verb, value)


def _fixed(value: Value, precision: int | None) -> str:
    number = _double("f", value)
    if not math.isfinite(number):
        return _symbol(number)
    number = number or 0.0  # without the sign of zero
    # Upstream formats for the locale en_US, which groups digits by thousands.
    return f"{number:,.{_PRECISION if precision is None else precision}f}"


def _scientific(value: Value, precision: int | None) -> str:
    """Upstream takes the precision for a width, and writes the exponent as people do."""
    number = _double("e", value) or 0.0
    text = _symbol(number)
    if math.isfinite(number):
        mantissa, _, exponent = f"{number:.{_PRECISION}e}".partition("e")
        text = f"{mantissa}×10{exponent.removeprefix('+').translate(_SUPERSCRIPT)}"
    return text.rjust(_PRECISION if precision is None else precision)


def _symbol(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "∞" if number > 0 else "-∞"


def _binary(value: Value, _precision: int | None) -> str:
    if type(value) in {bool, int, Uint}:
        return f"{int(value):b}"
    raise _wrong("b", value)


def _octal(value: Value, _precision: int | None) -> str:
    if type(value) in {int, Uint}:
        return f"{int(value):o}"
    raise _wrong("o", value)


def _hexadecimal(value: Value, _precision: int | None) -> str:
    if type(value) in {int, Uint}:
        return f"{int(value):x}"
    if type(value) is str:
        return value.encode().hex()
    if type(value) is bytes:
        return value.hex()
    raise _wrong("x", value)


def _wrong(verb: str, value: Value) -> EvaluationError:
    return EvaluationError(f"format: %{verb} cannot show a value of type {kind(value)}")


_VERBS: Final[dict[str, Verb]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": lambda value, precision: _hexadecimal(value, precision).upper(),
}

_INTEGERS: Final = frozenset({"int", "uint"})
SHOWN: Final[dict[str, frozenset[str]]] = {
    "s": _INTEGERS
    | {"list", "map", "double", "bool", "string", "bytes", "null_type", "duration", "timestamp"},
    "d": _INTEGERS,
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": _INTEGERS | {"bool"},
    "o": _INTEGERS,
    "x": _INTEGERS | {"string", "bytes"},
    "X": _INTEGERS | {"string", "bytes"},
}
"""The names of the types that each verb can show."""
