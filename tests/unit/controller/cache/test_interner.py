"""Equal to what was given, with one object for equal values."""

from __future__ import annotations

import copy
import json
import random
import tracemalloc
from typing import Any

import pytest

from controller.cache import interner as sharing
from controller.cache.interner import Interner


def some(draw: random.Random, depth: int) -> Any:
    """A value of few kinds, so that equal ones and almost equal ones are frequent."""
    if depth == 0 or draw.random() < 0.3:
        return draw.choice([0, 1, 1.0, True, False, None, "", "1", "a", "ü", -0.0, 2**70])
    if draw.random() < 0.3:
        return [some(draw, depth - 1) for _ in range(draw.randrange(3))]
    return {draw.choice("abc"): some(draw, depth - 1) for _ in range(draw.randrange(4))}


@pytest.mark.parametrize("most", [3, 10_000], ids=["forgetting", "remembering"])
def test_nothing_becomes_another_value(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_MOST_KNOWN", most)
    draw, share = random.Random(0), Interner()
    kept = []
    for _ in range(3_000):
        value = some(draw, 4)
        kept.append((repr(value), share(value)))
    for said, shared in kept:
        assert repr(shared) == said  # 1, 1.0 and True are equal


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("node-1", id="a string"),
        pytest.param({"a": "node-1", "b": [1, "node-1"]}, id="an object"),
        pytest.param([{"key": "k"}, {"key": "k"}], id="a list"),
    ],
)
def test_equal_values_are_one_object(value: object) -> None:
    share = Interner()
    one = share(json.loads(json.dumps(value)))
    again = json.loads(json.dumps(value))
    assert share(copy.copy(again)) is share(again) is one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"a": 1}, {"a": True}, id="a number and a truth"),
        pytest.param({"a": 1}, {"a": 1.0}, id="an int and a float"),
        pytest.param({"a": []}, {"a": {}}, id="a list and an object"),
        pytest.param({"a": [1]}, {"a": [[1]]}, id="one list more"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="another order"),
    ],
)
def test_what_is_not_the_same_is_told_apart(one: object, other: object) -> None:
    share = Interner()
    found = [share(each) for each in (one, other)]
    assert found[0] is not found[1]
    assert [repr(each) for each in found] == [repr(one), repr(other)]


@pytest.mark.parametrize(
    ("values", "size"), [(50, 1_000_000), (2_000, 50_000)], ids=["large", "many"]
)
def test_what_nobody_needs_any_more_is_not_kept_for_ever(values: int, size: int) -> None:
    """A pod's tolerations may be megabytes, and a tenant makes one such pod after another."""
    share = Interner()
    tracemalloc.start()
    for number in range(values):
        share([f"{number}", "x" * size])
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert left < 20 << 20
