"""JSON as the API server writes it itself.

The server keeps opaque ``parameters`` as the bytes that they were sent in. Of an allocation it
compares these bytes at each later write, and a PATCH goes through its own reading and writing: what
it would write otherwise makes every PATCH of the claim's status fail. So each body is sent as Go's
encoding/json writes what it has read: compact, keys in order, ``<``, ``>`` and ``&`` escaped,
numbers as an int64 or else as the shortest text of a double (k8s.io/apimachinery 0.36.3,
runtime.RawExtension and DefaultUnstructuredConverter).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from dra_driver.model.errors import InvalidValue

_INT64: Final = range(-(2**63), 2**63)
_FIXED_BELOW: Final = 1e21  # from there on, and below 1e-6, a double is written with an exponent
_FIXED_FROM: Final = 1e-6
# Half of a surrogate pair, which only an escape can have brought in, is no character.
_REPLACED: Final = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_FIRST_HALF, _LAST_HALF = "\ud800", "\udfff"
# Doubles, ints that may not be an int64, and what is no number of JSON. A match inside a string
# only costs time.
_UNUSUAL: Final = re.compile(
    r"(?:^|[:,\[])-?(?:[0-9]+[.e][0-9.e+-]*|[0-9]{19,}|NaN|Infinity)(?:[,\]}]|$)"
)
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9IN][^,\]}]*')


def encode(value: Any) -> bytes:
    """Raises InvalidValue for a number that JSON cannot express."""
    try:
        text = _ENCODER.encode(value)
    except ValueError as error:  # an int of thousands of digits
        raise _too_large() from error
    if _UNUSUAL.search(text):
        text = _TOKEN.sub(_token, text)
    return _REPLACED.sub(_replacement, text).encode()


def _plain(value: Any) -> Any:
    """What json does not know: a read-only view of a dict, or of a list."""
    return dict(value) if isinstance(value, Mapping) else list(value)


_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False,
    check_circular=False,
    sort_keys=True,
    separators=(",", ":"),
    default=_plain,
)


def _replacement(found: re.Match[str]) -> str:
    character = found[0]
    is_half = _FIRST_HALF <= character <= _LAST_HALF
    return "\ufffd" if is_half else f"\\u{ord(character):04x}"


def _token(found: re.Match[str]) -> str:
    text = found[0]
    if text[0] == '"' or (text.lstrip("-").isdigit() and int(text) in _INT64):
        return text
    number = float(text)
    if not math.isfinite(number):
        raise _too_large()
    if number == 0:
        return "0"  # of -0 Go writes the sign, and reads it as the int 0
    if _FIXED_FROM <= abs(number) < _FIXED_BELOW:
        fixed = f"{Decimal(repr(number)):f}"
        return fixed.rstrip("0").rstrip(".") if "." in fixed else fixed
    # Go pads the exponent to two digits as Python does, and encoding/json takes a zero of e-0 away.
    return repr(number).replace("e-0", "e-")


def _too_large() -> InvalidValue:
    return InvalidValue("a number is too large for a double, and cannot be sent as JSON")
