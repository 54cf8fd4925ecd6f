"""List and map literals."""

from __future__ import annotations

from collections.abc import Sequence

from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.interpreter.frame import Frame, Run
from dra_driver.selector.values import Optional, Value, map_key, no_overload


def list_literal(elements: Sequence[Run], optional: frozenset[int]) -> Run:
    """The elements at the places in `optional` are written ``?element``."""
    marked = [(element, n in optional) for n, element in enumerate(elements)]

    def create(frame: Frame) -> Value:
        created = []
        for element, is_optional in marked:
            value = element(frame)
            if is_optional:
                if not _checked(value).present:
                    continue
                value = value.value
            created.append(value)
        frame.budget.spend(1 + len(created))
        return created

    return create


def map_literal(entries: Sequence[tuple[Run, Run]], optional: frozenset[int]) -> Run:
    """The entries at the places in `optional` are written ``?key: value``."""
    marked = [(key, value, n in optional) for n, (key, value) in enumerate(entries)]

    def create(frame: Frame) -> Value:
        created: dict[Value, Value] = {}
        for key, entry, is_optional in marked:
            found, value = _literal_key(key(frame)), entry(frame)
            if is_optional:
                if not _checked(value).present:
                    created.pop(found, None)
                    continue
                value = value.value
            if found in created and not any(_same(found, each) for each in created):
                raise RefusedError(f"a map with an int and a uint {found} is not supported")
            created[found] = value
        frame.budget.spend(1 + len(created))
        return created

    return create


def _checked(value: Value) -> Optional:
    if not isinstance(value, Optional):
        raise no_overload("?", value)
    return value


def _same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and bool(one == other)


def _literal_key(key: Value) -> Value:
    try:
        return map_key(key)
    except EvaluationError as error:
        raise RefusedError(f"a map literal: {error}") from error
