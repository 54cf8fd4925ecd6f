"""Cyclic collection rests while lists are read, and leaves alone what was read."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dra_driver.util.collection import CollectionPause


@pytest.fixture
def no_collection() -> Iterator[CollectionPause]:
    yield CollectionPause()
    gc.unfreeze()


def test_collection_rests_until_the_last_one_is_out(no_collection: CollectionPause) -> None:
    with no_collection():
        with ThreadPoolExecutor(1) as pool, no_collection():
            assert not pool.submit(gc.isenabled).result()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_read_is_not_looked_through_again(no_collection: CollectionPause) -> None:
    before = gc.get_freeze_count()
    with no_collection():
        read = [{"number": [number]} for number in range(1_000)]
    assert gc.get_freeze_count() >= before + len(read)


def test_a_list_that_failed_does_not_end_collection_for_good(
    no_collection: CollectionPause,
) -> None:
    with pytest.raises(ValueError, match="no list"), no_collection():
        raise ValueError("no list")
    assert gc.isenabled()


class Cyclic:
    """Is freed by a collection alone."""

    def __init__(self) -> None:
        self.me = self


def test_after_the_start_a_list_keeps_no_garbage_alive(no_collection: CollectionPause) -> None:
    """A list that is refused is read every five minutes."""
    no_collection.end_start()
    cyclic = Cyclic()
    with no_collection():
        pass
    gone = weakref.ref(cyclic)
    del cyclic
    gc.collect()
    assert gone() is None
