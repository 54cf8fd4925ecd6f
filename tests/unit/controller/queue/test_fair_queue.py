"""Priority, then namespaces in turn, then age; namespaces that took too long come last."""

from __future__ import annotations

import itertools
import random

import pytest

from controller.cache.keys import Key, Subject
from controller.queue.fair_queue import FairQueue, Namespaces

_NUMBERS = itertools.count()


def key(name: str) -> Key:
    namespace, _, rest = name.partition("/")
    return Key(Subject.POD, namespace, rest)


def push(queue: FairQueue, name: str, priority: int = 0, age: str = "") -> None:
    """After all that were pushed."""
    queue.push(key(name), (priority, age, next(_NUMBERS)))


def popped(queue: FairQueue, namespaces: Namespaces, now: float = 0.0) -> list[str]:
    found = []
    while (head := queue.head(now)) is not None:
        queue.remove(head.key)
        namespaces.begin_step(head.key.namespace)
        found.append(f"{head.key.namespace}/{head.key.name}")
    return found


def test_priority_then_age() -> None:
    namespaces = Namespaces()
    queue = FairQueue(namespaces)
    push(queue, "a/3", age="3")
    push(queue, "a/2", age="2")
    push(queue, "a/9", priority=-5, age="9")
    push(queue, "a/2b", age="2")
    assert popped(queue, namespaces) == ["a/9", "a/2", "a/2b", "a/3"]


def test_of_one_age_the_smaller_number_comes_first() -> None:
    namespaces = Namespaces()
    queue = FairQueue(namespaces)
    for number in (2, 3, 1):
        queue.push(key(f"a/{number}"), (0, "1", number))
    assert popped(queue, namespaces) == ["a/1", "a/2", "a/3"]


def test_a_key_that_comes_back_with_its_number_has_its_new_place() -> None:
    namespaces = Namespaces()
    queue = FairQueue(namespaces)
    queue.push(key("a/1"), (0, "2", 1))
    queue.remove(key("a/1"))
    queue.push(key("a/1"), (0, "9", 1))
    queue.push(key("b/1"), (0, "5", 2))
    assert popped(queue, namespaces) == ["b/1", "a/1"]


def test_namespaces_of_one_priority_take_namespaces() -> None:
    namespaces = Namespaces()
    queue = FairQueue(namespaces)
    for number in range(4):
        push(queue, f"crowd/{number}", age="1")
    for number in range(2):
        push(queue, f"small/{number}", age="2")
    assert popped(queue, namespaces) == [
        *("crowd/0", "small/0", "crowd/1", "small/1", "crowd/2", "crowd/3")
    ]


def test_a_namespace_that_was_idle_comes_first_once() -> None:
    namespaces = Namespaces()
    for _ in range(100):
        namespaces.begin_step("busy")
    queue = FairQueue(namespaces)
    for number in range(3):
        push(queue, f"busy/{number}", age="1")
        push(queue, f"idle/{number}", age="2")
    assert popped(queue, namespaces) == ["idle/0", "busy/0", "idle/1", "busy/1", "idle/2", "busy/2"]


def test_priority_comes_before_the_turns_of_namespaces() -> None:
    namespaces = Namespaces()
    queue = FairQueue(namespaces)
    for number in range(3):
        push(queue, f"urgent/{number}", priority=-1)
    push(queue, "small/0")
    assert popped(queue, namespaces) == ["urgent/0", "urgent/1", "urgent/2", "small/0"]


def test_any_history_gives_what_sorting_gives() -> None:
    """With one namespace, whose namespaces change nothing."""
    draw = random.Random(7)
    namespaces = Namespaces()
    queue = FairQueue(namespaces)
    model: dict[Key, tuple[int, str, int]] = {}
    for number in range(20_000):
        if draw.random() < 0.52 or not model:
            each = key(f"a/{draw.randrange(200)}")
            place = draw.choice((0, 5)), str(draw.randrange(10)), number
            queue.push(each, place)
            model.setdefault(each, place)
        elif draw.random() < 0.5:
            gone = draw.choice(list(model))
            queue.remove(gone)
            del model[gone]
        else:
            head = queue.head(0.0)
            assert head is not None
            assert head.key == min(model, key=lambda each: model[each])
            queue.remove(head.key)
            namespaces.begin_step("a")
            del model[head.key]
    assert set(queue._entries) == model.keys()


def test_it_does_not_grow_with_keys_that_come_and_go() -> None:
    queue = FairQueue(Namespaces())
    push(queue, "a/first", age="0")
    for age in ("1", "2"):
        for _ in range(10_000):
            push(queue, "b/p", priority=5, age=age)
            queue.remove(key("b/p"))
    assert list(queue._lanes) == [(0, "a")]
    assert len(queue._heads) < 2_000


def test_a_key_that_comes_back_with_its_number_has_one_head() -> None:
    namespaces = Namespaces()
    queue = FairQueue(namespaces)
    for _ in range(1_000):
        queue.push(key("a/1"), (0, "1", 1))
        namespaces.begin_step("a")
        assert queue.head(0.0) is not None
        queue.remove(key("a/1"))
    assert len(queue._heads) <= 2


class CountingNamespaces(Namespaces):
    """Counts how often it is asked."""

    questions = 0

    def last_served(self, namespace: str) -> int:
        self.questions += 1
        return super().last_served(namespace)


def test_the_next_key_costs_the_same_whatever_the_namespaces() -> None:
    def questions(count: int) -> float:
        namespaces = CountingNamespaces()
        queue = FairQueue(namespaces)
        for number in range(count):
            push(queue, f"n{number}/p", age=str(number))
        assert len(popped(queue, namespaces)) == count
        return namespaces.questions / count

    assert questions(2_000) == questions(20)


def test_ordinary_steps_are_not_charged() -> None:
    namespaces = Namespaces()
    for nth in range(10_000):
        namespaces.charge("many", 0.02, nth * 0.02)
    assert namespaces.excess("many", 200.0) == 0.0


@pytest.mark.parametrize(("steps", "yields"), [([0.2], False), ([0.1] * 3, True), ([1.0], True)])
def test_long_steps_are(steps: list[float], *, yields: bool) -> None:
    namespaces = Namespaces()
    for seconds in steps:
        namespaces.charge("costly", seconds, 5.0)
    assert (namespaces.excess("costly", 5.0) > 0) is yields
    assert namespaces.excess("another", 5.0) == 0.0


def test_they_are_forgiven_with_time() -> None:
    namespaces = Namespaces()
    namespaces.charge("costly", 1.0, 0.0)
    assert namespaces.excess("costly", 10.0) == pytest.approx(namespaces.excess("costly", 0.0) / 2)
    assert namespaces.excess("costly", 30.0) == 0.0
    namespaces.charge("costly", 1.0, 30.0)
    assert namespaces.excess("costly", 30.0) > 1.0  # the rest of the first one counts


def filled(namespaces: Namespaces, *names: str) -> FairQueue:
    """Each key has its name as its priority."""
    queue = FairQueue(namespaces)
    for name in names:
        push(queue, name, priority=int(name.partition("/")[2]))
    return queue


def test_namespaces_that_take_too_much_come_last_the_least_of_them_first() -> None:
    namespaces = Namespaces()
    queue = filled(namespaces, "a/1", "b/2", "c/3", "a/4", "b/5", "c/6")
    namespaces.charge("a", 2.0, 0.0)
    namespaces.charge("b", 1.0, 0.0)
    assert popped(queue, namespaces) == ["c/3", "c/6", "b/2", "b/5", "a/1", "a/4"]


def test_they_come_as_ever_when_they_are_forgiven() -> None:
    namespaces = Namespaces()
    queue = filled(namespaces, "a/1", "b/2", "a/3", "b/4")
    namespaces.charge("a", 1.0, 0.0)
    head = queue.head(0.0)
    assert head is not None
    assert head.key == key("b/2")
    push(queue, "a/1", priority=9)  # it stands there already
    assert len(queue) == 4
    assert popped(queue, namespaces, 60.0) == ["a/1", "b/2", "a/3", "b/4"]
