"""Selecting from a value, step by step: ``a.b``, ``a["b"]``, ``a.?b`` and ``a[?"b"]``.

From the first optional step on, or where the value itself is optional, each step finds something or
the whole selection is nothing (github.com/google/cel-go v0.26.0, interpreter/attributes.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dra_driver.selector.interpreter.frame import Frame, Run
from dra_driver.selector.library.operators import index
from dra_driver.selector.library.optionals import find, held, reread
from dra_driver.selector.values import NOTHING, Optional, Value, no_overload


@dataclass(frozen=True, slots=True)
class SelectionStep:
    """One selection: of the `field`, or of what the `key` evaluates to."""

    field: str
    key: Run | None = None
    optional: bool = False


def variable(slot: int) -> Run:
    def read(frame: Frame) -> Value:
        value = frame.variables[slot]
        return reread(value) if isinstance(value, Optional) else value

    return read


def content(slot: int) -> Run:
    """What the optional value in the variable holds; if that is an error, this read raises it."""

    def read(frame: Frame) -> Value:
        return reread(frame.variables[slot].value)

    return read


def selection(operand: Run, steps: Sequence[SelectionStep]) -> Run:
    """The operand with all steps done; an optional value if it or a step is optional."""

    def read(frame: Frame) -> Value:
        return reread(operand(frame))

    def select(frame: Frame) -> Value:
        value, present = _follow(frame, operand, steps)
        if present is None:
            return value
        return Optional(True, value) if present else NOTHING

    return select if steps else read


def presence(operand: Run, steps: Sequence[SelectionStep]) -> Run:
    """``has()`` of the field of the last step."""
    *before, last = steps

    def test(frame: Frame) -> Value:
        frame.budget.spend(1)
        value, present = _follow(frame, operand, before)
        return present is not False and find(value, last.field).present

    return test


def _follow(
    frame: Frame, operand: Run, steps: Sequence[SelectionStep]
) -> tuple[Value, bool | None]:
    """What the steps lead to, and where it is optional whether there is anything."""
    frame.budget.spend(len(steps))
    value = operand(frame)
    present: bool | None = None
    if isinstance(value, Optional):
        value, present = held(value), value.present
    for step in steps:
        if present is False:
            break  # keys are not evaluated any more
        key = step.field if step.key is None else step.key(frame)
        if present or step.optional:
            found = find(value, key)
            value, present = found.content, found.present
        elif step.key is None and not isinstance(value, dict):
            raise no_overload(f".{key}", value)
        else:
            value = index(value, key)
    return value, present


def either(optional: Run, other: Run) -> Run:
    """``or``, which evaluates the other one only if it is needed."""

    def run(frame: Frame) -> Value:
        frame.budget.spend(1)
        value = optional(frame)
        # Upstream takes what is not optional as it is.
        return value if not isinstance(value, Optional) or value.present else other(frame)

    return run


def or_value(optional: Run, other: Run) -> Run:
    """``orValue``, which evaluates the other one only if it is needed."""

    def run(frame: Frame) -> Value:
        frame.budget.spend(1)
        value = optional(frame)
        if not isinstance(value, Optional):
            return value
        return value.value if value.present else other(frame)

    return run


def optional_map(target: Run, slot: int, body: Run, *, flat: bool) -> Run:
    """``optMap``, or ``optFlatMap`` where it is `flat`; in `slot` is what its variable reads."""

    def run(frame: Frame) -> Value:
        frame.budget.spend(1)
        optional = target(frame)
        if not isinstance(optional, Optional):
            raise no_overload("hasValue", optional)
        if not optional.present:
            return NOTHING
        frame.variables[slot] = optional
        value = body(frame)
        return reread(value if flat else Optional(True, value))

    return run
