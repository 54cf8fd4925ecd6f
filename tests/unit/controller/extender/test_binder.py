"""Binding: one write, counted from the decision on until it is known what became of it."""

from __future__ import annotations

import threading

import pytest

from controller.allocator.packing.policy import Policy
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.binder import Binder, _binding
from controller.extender.decide import filter_nodes
from controller.extender.wire import BindArgs
from dra_driver.kube.errors import Conflict, TooManyRequests, Unavailable
from dra_driver.kube.resources import BINDINGS, PODS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError, Refused
from tests.unit.controller.extender.api import PodApi
from tests.unit.controller.extender.build import SHARED, card, node, pod, view

FOUR = pod("a", {SHARED: 4})


class World:
    """A node `n` of one free card, and pods."""

    def __init__(self, *pods: Object) -> None:
        self.now = 100.0
        self.api = PodApi(*pods)
        self.view: AnnotatedCluster = view(node("n", card(1)), node("m", card(2)))
        self.binder = Binder(
            self.api,
            self.view,
            threading.Lock(),
            Policy(),
            clock=lambda: self.now,
            now_ns=lambda: 5,
        )

    def bind(self, name: str = "a", uid: str = "", on: str = "n") -> None:
        self.binder.bind(BindArgs("default", name, uid or f"uid-{name}", on))

    def has_room_for(self, slices: int) -> bool:
        probe = pod("probe", {SHARED: slices})
        return bool(filter_nodes(self.view, Policy(), probe, ["n"]).fit)


def test_pod_node_and_hint_come_with_one_write() -> None:
    world = World(FOUR)
    world.bind()
    (binding,) = world.api.bindings
    assert binding["metadata"]["uid"] == "uid-a"
    assert binding["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n"}
    annotations = binding["metadata"]["annotations"]
    assert annotations["gcu.enflame.com/assigned-cards"] == "0000:01:00.0"
    assert annotations["enflame.com/gcu-assigned-minor"] == "11"
    assert annotations["enflame.com/gcu-assigned-time"] == "5"


def test_it_counts_before_and_after_the_watch_tells() -> None:
    world = World(FOUR)
    world.bind()
    assert not world.has_room_for(3)
    world.view.put_pod(world.api.watched("a"))
    assert not world.view.is_assumed("uid-a")
    assert not world.has_room_for(3)
    assert world.has_room_for(2)


def test_two_that_were_both_told_to_fit_do_not_both_come() -> None:
    world = World(FOUR, pod("b", {SHARED: 4}))
    world.bind("a")
    with pytest.raises(Refused, match="node n: 1 card: 1 with fewer than 4 free slices"):
        world.bind("b")
    assert [each["metadata"]["name"] for each in world.api.bindings] == ["a"]


@pytest.mark.parametrize(
    ("known", "call", "words"),
    [
        (FOUR, {"uid": "uid-before"}, "pod default/a is another one by now"),
        (pod("a", {SHARED: 1}, on="m"), {}, "bound to m already"),
        (
            {**FOUR, "metadata": {**FOUR["metadata"], "deletionTimestamp": "now"}},
            {},
            "being deleted",
        ),
    ],
    ids=["another pod of the name", "bound elsewhere", "being deleted"],
)
def test_what_is_no_longer_to_be_bound(known: Object, call: dict[str, str], words: str) -> None:
    world = World(known)
    with pytest.raises(Refused, match=words):
        world.bind(**call)
    assert world.api.bindings == []
    assert world.has_room_for(6)


def test_a_call_that_is_repeated_is_done_already() -> None:
    world = World(FOUR)
    world.bind()
    world.bind()
    assert len(world.api.bindings) == 1


def test_a_pod_without_our_limits_is_not_bound() -> None:
    """kube-scheduler asks about none: it is somebody who has its certificate."""
    world = World(pod("a", {"cpu": 1}))
    with pytest.raises(Refused, match="pod default/a has no limit for GCUs"):
        world.bind()
    assert world.api.bindings == []


def test_a_pod_that_asks_for_nothing_is_bound_all_the_same() -> None:
    world = World(pod("a", {SHARED: 0}))
    world.bind()
    assert world.api.bindings[0]["metadata"]["annotations"] == {}


def test_a_write_that_was_refused_counts_no_longer() -> None:
    world = World(FOUR)
    world.api.refusals["create"] = [Conflict("bound by somebody else")]
    with pytest.raises(Conflict):
        world.bind()
    assert world.has_room_for(6)


@pytest.mark.parametrize(
    ("arrived", "left"), [(True, 2), (False, 6)], ids=["it had arrived", "it never arrived"]
)
def test_a_write_without_an_answer_counts_until_it_is_known(arrived: bool, left: int) -> None:
    world = World(FOUR)
    silence: list[GcuError] = [Unavailable("no answer")]
    if arrived:
        world.api.late = silence
    else:
        world.api.refusals["create"] = silence
    with pytest.raises(Unavailable):
        world.bind()
    world.binder.resolve_uncertain()
    assert not world.has_room_for(3)
    assert world.binder.has_uncertain()
    world.now += 61
    world.binder.resolve_uncertain()
    assert not world.view.is_assumed("uid-a")
    assert not world.binder.has_uncertain()
    assert world.has_room_for(left)
    assert not world.has_room_for(left + 1)


def test_a_pod_that_is_bound_once_more_while_it_is_looked_at_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(FOUR)
    world.api.refusals["create"] = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        world.bind()
    world.now += 61

    def late(*_: object, **__: object) -> Object:
        monkeypatch.undo()
        world.bind()
        return FOUR

    monkeypatch.setattr(world.api, "get", late)
    world.binder.resolve_uncertain()
    assert world.view.is_assumed("uid-a")
    assert not world.has_room_for(3)


def test_a_pod_that_was_deleted_meanwhile_counts_no_longer() -> None:
    world = World(FOUR)
    world.bind()
    world.api.remove(PODS, "a", "default")
    world.now += 61
    world.binder.resolve_uncertain()
    assert world.has_room_for(6)


def test_a_pod_that_goes_while_it_is_looked_at_counts_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(FOUR)
    world.bind()
    world.now += 61
    bound = world.api.watched("a")

    def late(*_: object, **__: object) -> Object:
        world.view.put_pod(bound)
        world.view.drop_pod("uid-a")
        return bound

    monkeypatch.setattr(world.api, "get", late)
    world.binder.resolve_uncertain()
    assert world.has_room_for(6)


def test_what_cannot_be_found_out_is_asked_again() -> None:
    world = World(FOUR)
    world.bind()
    world.now += 61
    world.api.refusals["get"] = [Unavailable("no answer")]
    world.binder.resolve_uncertain()
    assert world.view.is_assumed("uid-a")
    world.binder.resolve_uncertain()
    assert not world.view.is_assumed("uid-a")
    assert not world.has_room_for(3)


def unanswered(world: World) -> Object:
    """The pod's Binding to `n`, which the server has not carried out yet."""
    world.api.refusals["create"] = [Unavailable("no answer")]
    with pytest.raises(Unavailable):
        world.bind()
    return _binding(BindArgs("default", "a", "uid-a", "n"), {})


def test_a_pod_whose_write_was_not_answered_is_bound_elsewhere_once_that_is_known() -> None:
    """Otherwise its first write could arrive after another pod was given the cards."""
    world = World(FOUR, pod("b", {SHARED: 4}))
    unanswered(world)
    words = "default/a may still become bound to n: the API server has not answered the first call"
    with pytest.raises(Refused, match=words):
        world.bind(on="m")
    with pytest.raises(Refused, match="node n: 1 card: 1 with fewer than 4 free slices"):
        world.bind("b")
    world.now += 61
    world.binder.resolve_uncertain()
    world.bind(on="m")
    world.bind("b")


def test_a_write_that_arrives_late_is_counted_where_it_arrived() -> None:
    world = World(FOUR, pod("b", {SHARED: 4}))
    late = unanswered(world)
    with pytest.raises(Refused):
        world.bind(on="m")
    world.api.create(BINDINGS, late)
    world.bind(on="n")
    with pytest.raises(Refused):
        world.bind("b")
    assert [each["target"]["name"] for each in world.api.bindings] == ["n"]


def test_a_repeated_call_gives_the_cards_of_the_first_one() -> None:
    """Of which the write may arrive instead."""
    world = World(FOUR)
    world.view.put_node(node("n", card(1), card(2)))
    sent: list[Object] = []
    create = world.api.create

    def lost(_: Resource, body: Object) -> Object:
        sent.append(body)
        raise Unavailable("no answer")

    world.api.create = lost  # type: ignore[method-assign, assignment]
    with pytest.raises(Unavailable):
        world.bind()
    (first,) = sent
    other = "0000:02:00.0" if "01:00" in str(first["metadata"]["annotations"]) else "0000:01:00.0"
    holder = pod("h", {SHARED: 1}, on="n", cards=other)
    world.view.put_pod(holder)  # best fit is the other card by now
    world.api.create = create  # type: ignore[method-assign]
    world.bind()
    assert world.api.bindings == [first]


def test_a_server_that_had_too_much_to_do_has_bound_nothing() -> None:
    world = World(FOUR)
    world.api.refusals["create"] = [TooManyRequests("slower")]
    with pytest.raises(TooManyRequests):
        world.bind()
    assert world.has_room_for(6)
    world.bind(on="m")


def test_a_server_that_had_too_much_to_do_says_nothing_of_an_earlier_call() -> None:
    world = World(FOUR)
    world.api.refusals["create"] = [Unavailable("no answer"), TooManyRequests("slower")]
    for error in (Unavailable, TooManyRequests):
        with pytest.raises(error):
            world.bind()
    assert not world.has_room_for(3)


def test_a_pod_that_an_earlier_call_bound_meanwhile_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kube-scheduler gave up on the first call, and asks once more; the server has written the
    first one's Binding when the second one's comes."""
    world = World(FOUR)
    create = world.api.create
    sent: list[Object] = []

    def late(resource: Resource, body: Object) -> Object:
        sent.append(body)
        if len(sent) == 1:
            raise Unavailable("no answer")
        create(resource, sent[0])
        return create(resource, body)

    monkeypatch.setattr(world.api, "create", late)
    with pytest.raises(Unavailable):
        world.bind(on="n")
    with pytest.raises(Conflict):
        world.bind(on="n")
    assert not world.has_room_for(3)
