"""Cyclic collection rests while lists are read, and leaves alone what was read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dra_driver.util.collection import no_collection


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_collection_rests_until_the_last_one_is_out() -> None:
    with no_collection():
        with ThreadPoolExecutor(1) as pool, no_collection():
            assert not pool.submit(gc.isenabled).result()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_read_is_not_looked_through_again() -> None:
    before = gc.get_freeze_count()
    with no_collection():
        read = [{"number": [number]} for number in range(1_000)]
    assert gc.get_freeze_count() >= before + len(read)


def test_a_list_that_failed_does_not_end_collection_for_good() -> None:
    with pytest.raises(ValueError, match="no list"), no_collection():
        raise ValueError("no list")
    assert gc.isenabled()
