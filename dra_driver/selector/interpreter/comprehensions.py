"""Macros over lists and the keys of maps (github.com/google/cel-go v0.26.0, parser/macro.go)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dra_driver.selector.errors import EvaluationError
from dra_driver.selector.interpreter.frame import Frame, Run
from dra_driver.selector.library.lists import in_order, sorting
from dra_driver.selector.library.optionals import reread
from dra_driver.selector.values import Value, key_value, no_overload

Loop = Callable[[Frame, Value], Value]

_STEP: Final = 3  # a round's own cost beside its body's, in cel-go's count


def comprehension(macro: str, slot: int, body: Run, condition: Run | None) -> Loop:
    """The macro as a function of what it loops over; `slot` is its variable's."""
    match macro:
        case "all" | "exists":
            return _absorbing(macro, slot, body, absorbing=macro == "exists")
        case "exists_one":
            return lambda frame, over: len(_kept(macro, frame, over, slot, body)) == 1
        case "filter":
            return lambda frame, over: _kept(macro, frame, over, slot, body)
        case "sortBy":
            return _sorted(slot, body)
        case _:
            return _mapped(slot, body, condition)


def _absorbing(macro: str, slot: int, body: Run, *, absorbing: bool) -> Loop:
    """One round with the absorbing value decides, even where another one is an error."""

    def loop(frame: Frame, over: Value) -> Value:
        pending: EvaluationError | None = None
        for _ in _rounds(macro, frame, over, slot):
            try:
                value = body(frame)
            except EvaluationError as error:
                pending = pending or error
                continue
            if value is absorbing:
                return absorbing
            if type(value) is not bool:
                pending = pending or no_overload(macro, value)
        if pending is not None:
            raise pending
        return not absorbing

    return loop


def _kept(macro: str, frame: Frame, over: Value, slot: int, body: Run) -> list[Value]:
    kept = []
    for item in _rounds(macro, frame, over, slot):
        value = body(frame)
        if type(value) is not bool:
            raise no_overload(macro, value)
        if value:
            kept.append(reread(item))
    return kept


def _mapped(slot: int, body: Run, condition: Run | None) -> Loop:
    def loop(frame: Frame, over: Value) -> Value:
        mapped = []
        for _ in _rounds("map", frame, over, slot):
            if condition is not None:
                value = condition(frame)
                if type(value) is not bool:
                    raise no_overload("map", value)
                if not value:
                    continue
            mapped.append(body(frame))
        return mapped

    return loop


def _sorted(slot: int, body: Run) -> Loop:
    def loop(frame: Frame, over: Value) -> Value:
        if not isinstance(over, list):
            raise no_overload("sortBy", over)
        items, keys = [], []
        for item in _rounds("sortBy", frame, over, slot):
            items.append(item)
            keys.append(body(frame))
        frame.budget.weigh(keys)
        frame.budget.spend(sorting(keys))
        return in_order(items, keys)

    return loop


def _rounds(macro: str, frame: Frame, over: Value, slot: int) -> Iterator[Value]:
    """Each item, after it was put into the variable."""
    if isinstance(over, dict):
        items = [key_value(key) for key in over]
    elif isinstance(over, list):
        items = over
    else:
        raise no_overload(macro, over)
    for item in items:
        frame.budget.spend(_STEP)
        frame.variables[slot] = item
        yield item
