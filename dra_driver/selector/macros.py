"""Logic over several operands: ``&&``, ``||`` and the macros over lists and the keys of maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from celpy import celtypes

from dra_driver.selector.errors import EvaluationError
from dra_driver.selector.operators import Value, no_overload

Body = Callable[[Value], Value]
Macro = Callable[[Value, Body], Value]


def truth(name: str, value: Value) -> bool:
    """The value as a bool; raises EvaluationError for `name` if it is none."""
    if not isinstance(value, celtypes.BoolType):
        raise no_overload(name, value)
    return bool(value)


def fold(name: str, sides: Iterable[Callable[[], Value]], *, absorbing: bool) -> Value:
    """``||`` (absorbing True) or ``&&`` (absorbing False) over any number of operands: one
    operand with the absorbing value decides, even where another one is an error."""
    pending: EvaluationError | None = None
    for side in sides:
        try:
            if truth(name, side()) is absorbing:
                return celtypes.BoolType(absorbing)
        except EvaluationError as error:
            pending = pending or error
    if pending is not None:
        raise pending
    return celtypes.BoolType(not absorbing)


def _all(receiver: Value, body: Body) -> Value:
    sides = (partial(body, item) for item in _items("all", receiver))
    return fold("all", sides, absorbing=False)


def _exists(receiver: Value, body: Body) -> Value:
    sides = (partial(body, item) for item in _items("exists", receiver))
    return fold("exists", sides, absorbing=True)


def _exists_one(receiver: Value, body: Body) -> Value:
    found = [truth("exists_one", body(item)) for item in _items("exists_one", receiver)]
    return celtypes.BoolType(sum(found) == 1)


def _filter(receiver: Value, body: Body) -> Value:
    items = _items("filter", receiver)
    return celtypes.ListType([item for item in items if truth("filter", body(item))])


def _map(receiver: Value, body: Body) -> Value:
    return celtypes.ListType([body(item) for item in _items("map", receiver)])


def _items(name: str, receiver: Value) -> list[Value]:
    if isinstance(receiver, celtypes.ListType | celtypes.MapType):
        return list(receiver)
    raise no_overload(name, receiver)


MACROS: Final[dict[str, Macro]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
}
