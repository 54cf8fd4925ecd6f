"""Priority, then namespaces in turn, then age."""

from __future__ import annotations

import random

from controller.cache.keys import Key, Subject
from controller.queue.fair_queue import FairQueue, Turns


def key(name: str) -> Key:
    namespace, _, rest = name.partition("/")
    return Key(Subject.POD, namespace, rest)


def popped(queue: FairQueue, turns: Turns) -> list[str]:
    found = []
    while (head := queue.head()) is not None:
        _, each = head
        queue.remove(each)
        turns.take(each.namespace)
        found.append(f"{each.namespace}/{each.name}")
    return found


def test_priority_then_age() -> None:
    turns = Turns()
    queue = FairQueue(turns)
    for name, priority, age in (
        ("a/3", 0, "3"),
        ("a/2", 0, "2"),
        ("a/9", -5, "9"),
        ("a/2b", 0, "2"),
    ):
        queue.push(key(name), priority, age)
    assert popped(queue, turns) == ["a/9", "a/2", "a/2b", "a/3"]


def test_namespaces_of_one_priority_take_turns() -> None:
    turns = Turns()
    queue = FairQueue(turns)
    for number in range(4):
        queue.push(key(f"crowd/{number}"), 0, "1")
    for number in range(2):
        queue.push(key(f"small/{number}"), 0, "2")
    assert popped(queue, turns) == [
        *("crowd/0", "small/0", "crowd/1", "small/1", "crowd/2", "crowd/3")
    ]


def test_whoever_was_idle_goes_first_once() -> None:
    turns = Turns()
    for _ in range(100):
        turns.take("busy")
    queue = FairQueue(turns)
    for number in range(3):
        queue.push(key(f"busy/{number}"), 0, "1")
        queue.push(key(f"idle/{number}"), 0, "2")
    assert popped(queue, turns) == ["idle/0", "busy/0", "idle/1", "busy/1", "idle/2", "busy/2"]


def test_a_more_urgent_namespace_does_not_wait_for_its_turn() -> None:
    turns = Turns()
    queue = FairQueue(turns)
    for number in range(3):
        queue.push(key(f"urgent/{number}"), -1, "")
    queue.push(key("small/0"), 0, "")
    assert popped(queue, turns) == ["urgent/0", "urgent/1", "urgent/2", "small/0"]


def test_any_history_gives_what_sorting_gives() -> None:
    """With one namespace, whose turns change nothing."""
    draw = random.Random(7)
    turns = Turns()
    queue = FairQueue(turns)
    model: dict[Key, tuple[int, str, int]] = {}
    for number in range(20_000):
        if draw.random() < 0.52 or not model:
            each = key(f"a/{draw.randrange(200)}")
            place = draw.choice((0, 5)), str(draw.randrange(10)), number
            queue.push(each, *place[:2])
            model.setdefault(each, place)
        elif draw.random() < 0.5:
            gone = draw.choice(list(model))
            queue.remove(gone)
            del model[gone]
        else:
            head = queue.head()
            assert head is not None
            assert head[1] == min(model, key=lambda each: model[each])
            queue.remove(head[1])
            turns.take("a")
            del model[head[1]]
    assert set(queue) == model.keys()


def test_it_does_not_grow_with_keys_that_come_and_go_behind_the_first() -> None:
    queue = FairQueue(Turns())
    queue.push(key("a/first"), 0, "0")
    for _ in range(10_000):
        queue.push(key("a/p"), 0, "1")
        queue.remove(key("a/p"))
    assert sum(map(len, queue._lanes.values())) < 2_000
