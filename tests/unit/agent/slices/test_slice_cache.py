"""What is known of the server's slices, from a watch and from answers that overtake it."""

from __future__ import annotations

import pytest

from dra_driver.agent.slices.slice_cache import SliceCache
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object

A7: Object = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "7"}}
A9: Object = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "9"}}
A10: Object = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "10"}}
NEW_A: Object = {"metadata": {"name": "a", "uid": "2", "resourceVersion": "12"}}
B: Object = {"metadata": {"name": "b", "uid": "3", "resourceVersion": "8"}}


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def published(calls: list[str]) -> SliceCache:
    cache = SliceCache()
    cache.on_change.subscribe(lambda: calls.append("changed"))
    return cache


def test_unknown_until_listed(published: SliceCache, calls: list[str]) -> None:
    before = published.slices
    published.on_replace([])
    assert (before, published.slices) == (None, ())
    assert calls == ["changed"]


@pytest.mark.parametrize(
    ("events", "known", "times"),
    [
        pytest.param([(Change.ADDED, B)], (A9, B), 1, id="added"),
        pytest.param([(Change.MODIFIED, A10)], (A10,), 1, id="modified"),
        pytest.param([(Change.MODIFIED, A9)], (A9,), 0, id="known already"),
        pytest.param([(Change.MODIFIED, A7)], (A9,), 0, id="older than known"),
        pytest.param([(Change.DELETED, A10)], (), 1, id="deleted"),
        pytest.param([(Change.DELETED, B)], (A9,), 0, id="unknown deleted"),
        pytest.param([(Change.ADDED, NEW_A)], (NEW_A,), 1, id="another of that name"),
        pytest.param(
            [(Change.ADDED, NEW_A), (Change.DELETED, A10)], (NEW_A,), 1, id="its forerunner deleted"
        ),
    ],
)
def test_the_watch(
    published: SliceCache,
    calls: list[str],
    events: list[tuple[Change, Object]],
    known: tuple[Object, ...],
    times: int,
) -> None:
    published.on_replace([A9])
    calls.clear()
    for change, obj in events:
        published.on_event(change, obj)
    assert published.slices == known
    assert len(calls) == times


def test_own_writes_are_known_at_once_and_wake_nobody(
    published: SliceCache, calls: list[str]
) -> None:
    published.on_replace([A7])
    calls.clear()
    published.on_written(A10)
    published.on_written(B)
    published.on_event(Change.MODIFIED, A9)
    published.on_event(Change.MODIFIED, A10)
    published.on_event(Change.ADDED, B)
    with_both = published.slices
    published.on_removed(B)
    published.on_event(Change.DELETED, B)
    assert (with_both, published.slices) == ((A10, B), (A10,))
    assert calls == []


def test_an_answer_that_comes_after_the_deletion_brings_nothing_back(
    published: SliceCache, calls: list[str]
) -> None:
    """As where somebody deletes a slice while the answer to its creation is under way."""
    published.on_replace([])
    calls.clear()
    published.on_event(Change.ADDED, A7)
    published.on_event(Change.DELETED, A9)
    published.on_written(A7)
    assert published.slices == ()
    assert calls == ["changed", "changed"]


def test_a_new_list_is_all_there_is(published: SliceCache) -> None:
    published.on_replace([A7, B])
    published.on_replace([A9])
    assert published.slices == (A9,)
