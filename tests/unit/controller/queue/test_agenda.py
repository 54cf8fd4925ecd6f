"""What falls due, and in which order."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from controller.cache.keys import Key, Subject
from controller.queue.agenda import Agenda


def pop(agenda: Agenda, now: float) -> Key | None:
    due = agenda.pop(now)
    return None if due is None else due.key


A, B = (Key(Subject.POD, "default", name) for name in "ab")


def test_nothing_is_due_before_its_time() -> None:
    agenda = Agenda()
    agenda.add(A, 5.0)
    assert pop(agenda, 4.9) is None
    assert agenda.next_due() == 5.0
    assert pop(agenda, 5.0) == A
    assert agenda.next_due() is None


def test_a_key_stands_once_at_its_earliest_time() -> None:
    agenda = Agenda()
    for at in (9.0, 3.0, 7.0):
        agenda.add(A, at)
    assert len(agenda) == 1
    assert pop(agenda, 10.0) == A
    assert pop(agenda, 10.0) is None


def test_first_due_first_out() -> None:
    agenda = Agenda()
    agenda.add(B, 1.0)
    agenda.add(A, 1.0)
    agenda.add(A, 2.0)
    assert [pop(agenda, 3.0), pop(agenda, 3.0), pop(agenda, 3.0)] == [B, A, None]


def test_of_those_that_are_due_the_least_rank_comes_first() -> None:
    agenda = Agenda(lambda key: (0, "") if key == A else (1, ""))
    agenda.add(B, 1.0)
    agenda.add(A, 2.0)
    assert pop(agenda, 1.5) == B
    agenda.add(B, 1.0)
    assert [pop(agenda, 3.0), pop(agenda, 3.0)] == [A, B]


def test_what_is_due_is_not_added_again() -> None:
    agenda = Agenda()
    agenda.add(A, 1.0)
    agenda.add(B, 1.0)
    assert pop(agenda, 2.0) == A
    agenda.add(B, 2.0)
    assert agenda.next_due() == float("-inf")
    assert [pop(agenda, 2.0), pop(agenda, 2.0)] == [B, None]


def test_of_many_keys_those_are_taken_out_that_nothing_stands_behind() -> None:
    agenda = Agenda()
    keys = [Key(Subject.POD, "default", f"p{n}") for n in range(2000)]
    for key in keys[:1000]:
        agenda.add(key, 1.0)
    assert agenda.take_out(lambda _: False) == []  # they are few
    assert pop(agenda, 1.0) == keys[0]
    for key in keys[1000:]:
        agenda.add(key, 2.0)
    stay = {keys[1], keys[1500]}
    assert len(agenda.take_out(stay.__contains__)) == 1997
    assert len(agenda) == 2
    assert [pop(agenda, 3.0), pop(agenda, 3.0), pop(agenda, 3.0)] == [keys[1], keys[1500], None]


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.floats(0, 100))))
def test_every_key_comes_out_once_in_order_of_time(planned: list[tuple[str, float]]) -> None:
    agenda = Agenda()
    earliest: dict[Key, float] = {}
    for name, at in planned:
        key = Key(Subject.CLAIM, "ns", name)
        agenda.add(key, at)
        earliest[key] = min(at, earliest.get(key, at))
    popped = []
    while (key_out := pop(agenda, 100.0)) is not None:
        popped.append(key_out)
    assert sorted(popped) == sorted(earliest)
    assert [earliest[key] for key in popped] == sorted(earliest.values())


def test_it_does_not_grow_with_looks_at_the_same_keys() -> None:
    """As a pod that waits is looked at with each release, and in five minutes else."""
    agenda = Agenda()
    keys = [Key(Subject.POD, "default", f"p{number}") for number in range(10)]
    for release in range(300):
        for key in keys:
            agenda.add(key, release + 300.0)
            agenda.add(key, float(release))
            assert pop(agenda, float(release)) == key
            agenda.add(key, release + 300.0)
    assert len(agenda) == len(keys)
    held = {sys.getrefcount(key) - sys.getrefcount(Key(Subject.POD, "", "")) for key in keys}
    assert max(held) <= 6, "there is more than one entry for a key"
    assert [pop(agenda, 1000.0) for _ in range(11)] == [*keys, None]
