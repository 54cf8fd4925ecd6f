"""Calling a function of a library: the overload that the values fit, at the cost it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_driver.selector.interpreter.frame import Frame, Run
from dra_driver.selector.library.overload import Overload
from dra_driver.selector.library.quantity import Quantity
from dra_driver.selector.library.semver import Semver
from dra_driver.selector.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
)
from dra_driver.selector.values import Duration, Optional, Timestamp, Uint, Value, no_overload

_CLASSES: Final[dict[str, type]] = {
    BOOL.name: bool,
    INT.name: int,
    UINT.name: Uint,
    DOUBLE.name: float,
    STRING.name: str,
    BYTES.name: bytes,
    DURATION.name: Duration,
    TIMESTAMP.name: Timestamp,
    QUANTITY.name: Quantity,
    SEMVER.name: Semver,
    "optional_type": Optional,
}
_SIZED: Final = (str, bytes, list, dict, Optional)


def caller(
    name: str, overloads: Sequence[Overload], arguments: Sequence[Run], only: Overload | None
) -> Run:
    """A call with these arguments; `only` is the one overload that the checker has found."""
    fixed = only is not None and not only.dynamic
    candidates = [
        each
        for each in overloads
        if len(each.arguments) == len(arguments) and (each is only or not fixed)
    ]

    def call(frame: Frame) -> Value:
        budget = frame.budget
        budget.spend(1)
        values = []
        for argument in arguments:
            value = argument(frame)
            if isinstance(value, _SIZED):
                budget.weigh(value)
            values.append(value)
        for overload in candidates:
            if all(map(_fits, overload.accepts or overload.arguments, values)):
                if overload.metered:
                    return overload.compute(budget, *values)
                if overload.work is not None:
                    budget.spend(overload.work(*values))
                return overload.compute(*values)
        raise no_overload(name, *values)

    return call


def _fits(wanted: Type, value: Value) -> bool:
    """Whether the value is of that type; of what a container holds, the first tells."""
    if wanted.variable or wanted == DYN:
        return True
    if wanted.name == "list":
        return type(value) is list and (not value or _fits(wanted.parameters[0], value[0]))
    if wanted.name == "map":
        return isinstance(value, dict)
    return type(value) is _CLASSES[wanted.name]
