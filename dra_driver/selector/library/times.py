"""Durations and timestamps as texts (Go's time package; common/types/duration.go, timestamp.go)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Final

from dra_driver.selector.errors import EvaluationError
from dra_driver.selector.values import INT64_MAX, Duration, Timestamp

_SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_AMOUNT: Final = re.compile(r"([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(ns|us|µs|μs|ms|s|m|h)")
_RFC3339: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]{1,30}))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62135596800
_LAST: Final = 253402300799


def parse_duration(text: str) -> Duration:
    """Of a text such as ``1h30m`` or ``-1.5s``."""
    sign, amounts = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if amounts == "0":
        return Duration(0)
    total = Decimal(0)
    position = 0
    while found := _AMOUNT.match(amounts, position):
        total += Decimal(found[1]) * _UNITS[found[2]]
        position = found.end()
    if not amounts or position != len(amounts) or total > INT64_MAX:
        raise EvaluationError(f"{text!r} is not a duration")
    return Duration(sign * int(total))


def duration_text(value: Duration) -> str:
    """In seconds, as ``5400s`` or ``1.5s``."""
    seconds = value.nanoseconds // _SECOND + (value.nanoseconds % _SECOND) / _SECOND
    return f"{Decimal(repr(float(seconds))).normalize():f}s"


def timestamp_of(seconds: int) -> Timestamp:
    """Of seconds since 1970. Raises EvaluationError outside the years 1 to 9999."""
    if not _FIRST <= seconds <= _LAST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(seconds * _SECOND)


def parse_timestamp(text: str) -> Timestamp:
    """Of a text such as ``2026-01-02T15:04:05Z``, with a fraction or an offset."""
    found = _RFC3339.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        offset = 0
        if found[3]:
            hours, minutes = int(found[4]), int(found[5])
            if hours > 24 or minutes > 59:
                raise ValueError(text)
            offset = (hours * 60 + minutes) * (1 if found[3] == "+" else -1)
        local = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    except ValueError:
        raise EvaluationError(f"{text!r} is not a timestamp") from None
    seconds = (local - _EPOCH) // timedelta(seconds=1) - offset * 60
    fraction = int((found[2] or "0")[:9].ljust(9, "0"))
    return Timestamp(timestamp_of(seconds).nanoseconds + fraction, offset)


def timestamp_text(value: Timestamp) -> str:
    """RFC 3339 at the offset that it was written with."""
    seconds, fraction = divmod(value.nanoseconds, _SECOND)
    zone = timezone(timedelta(minutes=value.offset))
    local = (_EPOCH + timedelta(seconds=seconds)).astimezone(zone)
    digits = f".{fraction:09d}".rstrip("0").rstrip(".")
    shown = "Z" if not value.offset else f"{local:%z}"[:3] + ":" + f"{local:%z}"[3:]
    return f"{local:%Y-%m-%dT%H:%M:%S}{digits}{shown}"
