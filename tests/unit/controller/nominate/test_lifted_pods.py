"""How namespaces share the places of pods that kube-scheduler sees although there is no room."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.cache.keys import Key, Subject
from controller.nominate.lifted_pods import LiftedPods


def key(name: str) -> Key:
    namespace, _, rest = name.partition("/")
    return Key(Subject.POD, namespace, rest)


def ask(pods: LiftedPods, namespace: str, count: int) -> int:
    """So many pods of the namespace ask for a place; gives how many have got one."""
    return sum(pods.admit(key(f"{namespace}/{number}")) for number in range(count))


def admitted(pods: LiftedPods) -> list[str]:
    """The namespaces that get the free places, in order: what a wake and a step do."""
    namespaces = []
    while (following := pods.next_to_admit()) is not None:
        pods.forget_request(following)
        assert pods.admit(following)
        namespaces.append(following.namespace)
    return namespaces


@pytest.mark.parametrize(
    ("places", "shares"),
    [
        pytest.param(0, [0, 0], id="none"),
        pytest.param(1, [1, 0], id="one place cannot be shared"),
        pytest.param(2, [1, 1], id="two"),
        pytest.param(3, [2, 1], id="three"),
        pytest.param(20, [10, 5, 3, 1, 1, 0], id="each takes half of what is left"),
    ],
)
def test_namespaces_that_come_one_after_another(places: int, shares: list[int]) -> None:
    pods = LiftedPods(places)
    assert [ask(pods, f"ns-{number}", 100) for number in range(len(shares))] == shares
    assert admitted(pods) == []


def test_who_has_a_place_is_admitted_again() -> None:
    """For its group, which one more member has joined: its gate holds all of them back."""
    pods = LiftedPods(1)
    assert ask(pods, "ns", 1) == ask(pods, "ns", 1) == 1


def test_namespaces_that_come_at_once_have_as_many() -> None:
    pods = LiftedPods(20)
    shares: Counter[str] = Counter()
    for number in range(100):
        for namespace in ("a", "b", "c"):
            shares[namespace] += pods.admit(key(f"{namespace}/{number}"))
    assert shares == {"a": 5, "b": 5, "c": 5}


@pytest.mark.parametrize(
    ("freed", "following"),
    [
        pytest.param(["a/0"], ["b"], id="the second namespace, which has fewer"),
        pytest.param(["b/0"], ["b"], id="of the second namespace"),
        pytest.param(
            ["a/0", "a/1"], ["b"], id="two, of which one stays free for a third namespace"
        ),
        pytest.param(["b/0", "b/1", "b/2"], ["b", "b", "b"], id="three of the second namespace"),
        pytest.param(["a/99"], [], id="a pod that has none"),
    ],
)
def test_a_freed_place_goes_to_the_namespace_that_has_the_fewest(
    freed: list[str], following: list[str]
) -> None:
    """Of 20 places `a` has 10 and `b` has 5."""
    pods = LiftedPods(20)
    for namespace in ("a", "b"):
        ask(pods, namespace, 50)
    for name in freed:
        pods.remove(key(name))
    assert admitted(pods) == following


def test_a_namespace_that_comes_late_is_served_from_what_is_free() -> None:
    pods = LiftedPods(20)
    assert ask(pods, "never-fits", 1000) == 10
    assert pods.next_to_admit() is None
    assert pods.admit(key("other/0"))


def test_pods_without_a_gate_leave_others_half_of_the_places() -> None:
    """Those of a DaemonSet come without one."""
    pods = LiftedPods(20)
    for number in range(100):
        pods.add(key(f"daemons/set-{number}"))
    assert ask(pods, "daemons", 1) == 0
    assert ask(pods, "other", 20) == 5


def test_a_pod_waits_until_it_is_forgotten() -> None:
    pods = LiftedPods(1)
    assert pods.admit(key("a/lifted"))
    for name in ("b/first", "b/second"):
        assert not pods.admit(key(name))
    assert pods.next_to_admit() is None
    pods.remove(key("a/lifted"))
    assert [pods.next_to_admit(), pods.next_to_admit()] == [key("b/first")] * 2
    pods.forget_request(key("b/first"))
    assert pods.next_to_admit() == key("b/second")
    pods.forget_request(key("b/second"))
    assert pods.next_to_admit() is None


def test_of_one_namespace_the_first_comes_first_however_often_it_asks() -> None:
    pods = LiftedPods(1)
    pods.add(key("a/lifted"))
    for name in ("b/first", "b/second", "b/first"):
        assert not pods.admit(key(name))
    pods.remove(key("a/lifted"))
    assert pods.next_to_admit() == key("b/first")


def test_a_pod_counts_once() -> None:
    pods = LiftedPods(4)
    for _ in range(3):
        pods.add(key("a/0"))
    assert pods.admit(key("a/1"))
    pods.remove(key("a/0"))
    assert pods.admit(key("a/2"))


def test_another_replica_leads() -> None:
    pods = LiftedPods(2)
    ask(pods, "a", 5)
    pods.clear()
    assert pods.next_to_admit() is None
    assert ask(pods, "a", 5) == 1
