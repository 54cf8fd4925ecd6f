"""A queue in which each key stands once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.queue.heap import KeyedHeap

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "pop", "remove"]),
        st.sampled_from("abcdefgh"),
        st.integers(0, 5),
    )
)


@given(STEPS)
def test_it_gives_what_looking_through_all_would_give(steps: list[tuple[str, str, int]]) -> None:
    heap: KeyedHeap[str, int] = KeyedHeap()
    expected: dict[str, tuple[int, int]] = {}
    for number, (what, key, priority) in enumerate(steps):
        if what == "put":
            heap.put(key, priority)
            expected[key] = priority, number
        elif what == "pop" and expected:
            first = min(expected, key=expected.__getitem__)
            assert heap.least() == (expected.pop(first)[0], first)
            assert heap.pop() == first
        elif what == "remove" and key in expected:
            heap.remove(key)
            del expected[key]
        assert set(heap) == set(expected)
        assert len(heap) == len(expected)
        assert heap.priority(key) == expected.get(key, (None,))[0]
    assert [heap.pop() for _ in expected] == sorted(expected, key=expected.__getitem__)
    assert heap.least() is None
