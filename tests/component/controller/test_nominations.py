"""kube-scheduler allocates, and the controller names the node and lifts the gate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from controller.nominate import followed_names
from controller.placer.placer import Placer
from dra_driver.kube.errors import Forbidden, KubeError, Unavailable
from dra_driver.kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS
from dra_driver.kube.scheduling_gate import has_gate
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    ALLOCATOR_SCHEDULER,
    CLASS_LIMIT_PREFIX,
    CLASS_WHOLE,
    DRIVER,
    RESOURCE_WHOLE,
    SCHEDULING_GATE,
)
from dra_driver.selector.allowance import AllowanceSpent
from tests.component.controller.conftest import Start
from tests.component.controller.replica import Replica
from tests.component.controller.stage import Stage
from tests.control_plane.attacks import built_patterns
from tests.control_plane.cards import in_all_modes
from tests.control_plane.objects import claim, pod_with
from tests.fake_api.store import Key
from tests.unit.controller.allocator.build import CLASSES, OTHER_CLASS

cards = partial(in_all_modes, allocator=ALLOCATOR_SCHEDULER)
GATES = [{"name": SCHEDULING_GATE}]
Nominate = Callable[..., Replica]


@pytest.fixture
def nominate(start_controller: Start) -> Nominate:
    """Starts a controller that names nodes; without `waiting` no pod is lifted that has no room."""

    def start(name: str = "replica-0", waiting: int = 0, **settings: object) -> Replica:
        return start_controller(name, allocator="scheduler", nomination_waiting=waiting, **settings)

    return start


def named(stage: Stage, pod: str) -> str:
    """The node that is named for the pod, once its gate is lifted."""
    stage.wait(lambda: not stage.gates(pod), f"gate of {pod} lifted", seen=lambda: stage.pod(pod))
    return str(stage.pod(pod)["status"].get("nominatedNodeName", ""))


def keeps_gate(stage: Stage, pod: str) -> None:
    """Return when an event has said why."""
    stage.wait_for_event(pod, "", "GcuAllocationFailed")
    assert stage.gates(pod)


def schedule(stage: Stage, pod: str, node: str, bus: int, name: str = "") -> None:
    """kube-scheduler allocates that card of the node to the pod's claim, and binds the pod."""
    device = f"whole-0000-{bus:02x}-00-0"
    result = {"request": "gcu", "driver": DRIVER, "pool": f"{DRIVER}/{node}", "device": device}
    stage.allocate(name or pod, {"devices": {"results": [result]}}, pod)
    stage.bind_to(pod, node)


def start(stage: Stage, *pods: str) -> None:
    for pod in pods:
        stage.start(pod, schedulingGates=GATES)


def test_the_node_is_named_and_nothing_is_allocated(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    start(stage, "user")
    nominate()
    assert named(stage, "user") == node
    assert not stage.is_allocated("user")
    key = Key(PODS, stage.namespace, "user")
    states = [
        (change.new["status"].get("nominatedNodeName"), bool(change.new["spec"]["schedulingGates"]))
        for change in stage.api.store.after(stage.api.store.oldest)
        if change.key == key and change.new is not None
    ]
    assert states == [(None, True), (node, True), (node, False)]


def test_named_pods_count_where_they_were_named(stage: Stage, nominate: Nominate) -> None:
    """Before kube-scheduler has allocated anything: two fill one node, two the other."""
    for _ in range(2):
        stage.add_node(cards(0, 1))
    names = [f"pod-{number}" for number in range(5)]
    nominate()
    nodes = []
    for name in names[:4]:
        start(stage, name)
        nodes.append(named(stage, name))
    first, second, third, fourth = nodes
    assert first == second != third == fourth
    start(stage, names[4])
    keeps_gate(stage, names[4])


def test_a_pod_without_room_is_named_when_there_is_some(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    nominate()
    start(stage, "first")
    assert named(stage, "first") == node
    start(stage, "second")
    keeps_gate(stage, "second")
    schedule(stage, "first", node, 0)
    assert stage.gates("second")
    stage.end("first")
    assert named(stage, "second") == node


def test_what_kube_scheduler_refuses_holds_nothing(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    nominate()
    start(stage, "first")
    assert named(stage, "first") == node
    start(stage, "second")
    keeps_gate(stage, "second")
    stage.refuse("first")
    assert named(stage, "second") == node


def test_a_name_that_kube_scheduler_leaves_is_taken_back(stage: Stage, nominate: Nominate) -> None:
    """From a pod that may not preempt: the name of another may be kube-scheduler's own by now."""
    stage.add_node(cards(0, 1))
    nominate()
    stage.start("polite", schedulingGates=GATES, preemptionPolicy="Never")
    start(stage, "other")
    for name in ("polite", "other"):
        assert named(stage, name)
        stage.refuse(name)
    status = partial(stage.pod, "polite")
    stage.wait(lambda: "nominatedNodeName" not in status()["status"], "the name taken back")
    assert stage.pod("other")["status"]["nominatedNodeName"]


def test_other_cards_than_foreseen_count_as_they_are(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0, 1))
    other = stage.add_node(cards(2))
    nominate()
    start(stage, "first")
    assert named(stage, "first") == other
    schedule(stage, "first", node, 1)
    start(stage, "second", "third")
    assert {named(stage, "second"), named(stage, "third")} == {node, other}


def test_kube_scheduler_may_come_to_pods_in_another_order(stage: Stage, nominate: Nominate) -> None:
    """Then the pods that it has not come to yet get other cards than were foreseen for them."""
    node = stage.add_node(cards(0, 1, 2))
    nominate()
    for name in ("first", "second"):
        start(stage, name)
        assert named(stage, name) == node
    schedule(stage, "second", node, 0)  # which the first would have had
    start(stage, "third")
    assert named(stage, "third") == node
    start(stage, "fourth")
    keeps_gate(stage, "fourth")


def test_what_is_foreseen_anew_may_take_more_than_one_step(
    stage: Stage, nominate: Nominate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is named meanwhile: the cards of pods that are named already would count as free."""
    node = stage.add_node(cards(0, 1, 2))
    nominate()
    for name in ("first", "second"):
        start(stage, name)
        assert named(stage, name) == node
    place = Placer.place
    stopped: list[Any] = []

    def stop_once(placer: Placer, *arguments: Any, **more: Any) -> object:
        if not stopped:
            stopped.append(arguments)
            raise AllowanceSpent("1 s")
        return place(placer, *arguments, **more)

    monkeypatch.setattr(Placer, "place", stop_once)
    schedule(stage, "second", node, 0)
    start(stage, "third")
    assert named(stage, "third") == node
    assert stopped
    start(stage, "fourth")
    keeps_gate(stage, "fourth")


def test_a_pod_that_was_not_named_may_get_a_foreseen_card(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0, 1))
    nominate()
    start(stage, "named")
    assert named(stage, "named") == node
    stage.start("alone")
    schedule(stage, "alone", node, 0)  # which the named one would have had
    start(stage, "late")
    keeps_gate(stage, "late")


def test_a_few_pods_without_room_are_lifted_for_autoscalers(
    stage: Stage, nominate: Nominate
) -> None:
    stage.add_node([])
    nominate(waiting=1)
    start(stage, "first")
    assert named(stage, "first") == ""
    start(stage, "second")
    keeps_gate(stage, "second")
    stage.refuse("first")
    stage.end("first")
    assert named(stage, "second") == ""


def test_no_namespace_has_all_places_of_pods_without_room(stage: Stage, nominate: Nominate) -> None:
    stage.add_node([])
    nominate(waiting=2)
    start(stage, "first")
    assert named(stage, "first") == ""
    start(stage, "second")
    keeps_gate(stage, "second")
    stage.add_made_claim(claim("user", "other"))
    stage.put_pod(pod_with("user", "other", "user", schedulingGates=GATES))
    stage.wait(lambda: not any(map(has_gate, stage.api.all(PODS, "other"))), "its gate lifted")
    assert stage.gates("second")


def test_a_place_whose_pod_cannot_be_lifted_goes_to_the_next(
    stage: Stage, nominate: Nominate
) -> None:
    """Somebody's policy refuses the first pod's patch each time."""
    stage.add_node([])
    for second, name in enumerate(("first", "second")):
        gated_by_age(stage, name, second)
    refusal = Forbidden("somebody's policy keeps gates", status=403)
    stage.api.faults.refuse(refusal, "patch", resource=PODS)
    nominate(waiting=1)
    assert named(stage, "second") == ""


def test_without_room_a_pod_with_costly_selectors_keeps_its_gate(
    stage: Stage, nominate: Nominate
) -> None:
    """kube-scheduler would try it again and again, and others would wait for it."""
    stage.add_node(cards(0))
    nominate(waiting=5)
    made = claim("costly", stage.namespace)
    made["spec"]["devices"]["requests"] = built_patterns(0)
    start_unsatisfiable(stage, "first")
    assert named(stage, "first") == ""
    stage.add_made_claim(made)
    stage.add_pod("costly", "costly", schedulingGates=GATES)
    keeps_gate(stage, "costly")
    start_unsatisfiable(stage, "second")
    assert named(stage, "second") == ""
    assert stage.gates("costly")


def start_unsatisfiable(stage: Stage, name: str) -> None:
    """A pod whose selector matches no device."""
    stage.add_made_claim(claim(name, stage.namespace, selector="false"))
    stage.add_pod(name, name, schedulingGates=GATES)


def test_of_pods_that_share_a_claim_one_is_lifted_first(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    stage.add_claim("shared")
    for name in ("one", "two"):
        stage.add_pod(name, "shared", schedulingGates=GATES)
    nominate()
    first = stage.wait(
        lambda: next((each for each in ("one", "two") if not stage.gates(each)), ""), "a lifted pod"
    )
    second = "two" if first == "one" else "one"
    stage.stays(lambda: bool(stage.gates(second)), 0.5, f"the gate of {second}")
    schedule(stage, first, node, 0, "shared")
    stage.wait(lambda: not stage.gates(second), f"gate of {second} lifted")


def test_alternatives_of_two_drivers_are_kube_schedulers_alone(
    stage: Stage, nominate: Nominate
) -> None:
    stage.add_node(cards(0))
    nominate()
    mixed = claim("user", stage.namespace)
    classes = {"gcu": CLASS_WHOLE, "other": OTHER_CLASS["metadata"]["name"]}
    subs = [{"name": name, "deviceClassName": each} for name, each in classes.items()]
    mixed["spec"]["devices"]["requests"] = [{"name": "any", "firstAvailable": subs}]
    stage.add_made_claim(mixed)
    stage.add_pod("user", "user", schedulingGates=GATES)
    assert named(stage, "user") == ""


def test_a_pod_whose_claim_is_late_is_not_kept(stage: Stage, nominate: Nominate) -> None:
    stage.add_node(cards(0))
    nominate()
    stage.add_pod("user", "later", schedulingGates=GATES)
    assert named(stage, "user") == ""


def test_a_claim_that_comes_in_time_is_placed(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    nominate()
    made = pod_with("user", stage.namespace, template="cards", schedulingGates=GATES)
    pod = stage.put_pod(made)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "user", "uid": pod["metadata"]["uid"]}
    generated = claim("user-made", stage.namespace)
    generated["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    stage.add_made_claim(generated)
    status = [{"name": "made", "resourceClaimName": "user-made"}]
    stage.put_pod(pod | {"status": {"phase": "Pending", "resourceClaimStatuses": status}})
    assert named(stage, "user") == node


def test_a_pod_without_claims_is_lifted_at_once(stage: Stage, nominate: Nominate) -> None:
    stage.add_node(cards(0))
    stage.add_pod("user", schedulingGates=GATES)
    nominate()
    assert named(stage, "user") == ""


def test_where_no_groups_are_served_a_member_is_named_alone(
    stage: Stage, nominate: Nominate
) -> None:
    node = stage.add_node(cards(0))
    stage.start("user", schedulingGates=GATES, schedulingGroup={"podGroupName": "group"})
    nominate()
    assert named(stage, "user") == node


def test_a_claim_that_no_prepare_hands_over_keeps_its_gate(
    stage: Stage, nominate: Nominate
) -> None:
    stage.add_node(cards(0, 1))
    nominate(waiting=5)
    made = claim("odd", stage.namespace)
    made["spec"]["devices"]["requests"][0]["exactly"]["unknownField"] = 1
    stage.add_made_claim(made)
    stage.add_pod("odd", "odd", schedulingGates=GATES)
    keeps_gate(stage, "odd")


def test_a_name_that_the_server_refuses_keeps_no_pod(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    nominate()
    refusal = Forbidden("only kube-scheduler may set nominatedNodeName", status=403)
    stage.api.faults.refuse(refusal, "patch", resource=PODS)
    start(stage, "user")
    assert named(stage, "user") == ""
    stage.wait_for_event("user", f"refused that node {node} is named", "GcuNodeNotNamed")
    start(stage, "next")
    assert named(stage, "next") == node


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Forbidden("somebody's policy", status=403), id="refused"),
        pytest.param(Unavailable("no answer"), id="no answer"),
    ],
)
def test_a_lift_that_failed_counts_as_none(
    stage: Stage, nominate: Nominate, error: KubeError
) -> None:
    """The only pod that may wait without a gate is tried again."""
    stage.add_node([])
    nominate(waiting=1)
    stage.api.faults.refuse(error, "patch", resource=PODS)
    start(stage, "user")
    assert named(stage, "user") == ""


def test_a_lift_that_is_refused_is_told(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    stage.add_pod("user", schedulingGates=GATES)
    refusal = Forbidden("somebody's policy keeps gates", status=403)
    stage.api.faults.refuse(refusal, "patch", resource=PODS)
    nominate()
    stage.wait_for_event("user", "somebody's policy keeps gates", "GcuGateNotLifted")
    assert named(stage, "user") == ""
    start(stage, "next")
    assert named(stage, "next") == node


def test_a_lost_answer_is_no_decision(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    nominate()
    stage.api.faults.refuse(Unavailable("no answer"), "patch", resource=PODS)
    start(stage, "user")
    assert named(stage, "user") == node


def test_the_next_leader_goes_on_with_what_it_finds(stage: Stage, nominate: Nominate) -> None:
    """A pod that was named and not yet bound, and one that was not yet lifted."""
    node = stage.add_node(cards(0))
    first = nominate("replica-0")
    start(stage, "named")
    assert named(stage, "named") == node
    first.stop()
    start(stage, "gated")
    nominate("replica-1")
    keeps_gate(stage, "gated")
    schedule(stage, "named", node, 0)
    stage.end("named")
    assert named(stage, "gated") == node


def test_the_next_leader_counts_pods_that_were_lifted_without_room(
    stage: Stage, nominate: Nominate
) -> None:
    stage.add_node([])
    for second, name in enumerate(("lifted", "gated")):
        gated_by_age(stage, name, second)
    first = nominate("replica-0", waiting=1)
    assert named(stage, "lifted") == ""
    stage.refuse("lifted")
    first.stop()
    replica = nominate("replica-1", waiting=1)
    stage.wait(lambda: replica.metric("gcu_controller_waiting_pods") == 2, "both seen")
    stage.stays(lambda: bool(stage.gates("gated")), 0.3, "the gate of the second")


def test_the_next_leader_counts_names_in_more_than_one_step(
    stage: Stage, nominate: Nominate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first steps of a leader cost most, and may be stopped."""
    node = stage.add_node(cards(0))
    first = nominate("replica-0")
    start(stage, "named")
    assert named(stage, "named") == node
    first.stop()
    place, stops = Placer.place, iter([True, True])

    def stop_twice(placer: Placer, *asked: Any, **more: Any) -> object:
        if next(stops, False):
            raise AllowanceSpent("1 s")
        return place(placer, *asked, **more)

    monkeypatch.setattr(Placer, "place", stop_twice)
    start(stage, "gated")
    nominate("replica-1")
    stage.wait_for_event("gated", "1 requested")
    assert stage.gates("gated")


def test_at_most_so_many_are_named(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0, 1, 2))
    nominate(nomination_limit=1)
    start(stage, "first", "second")
    lifted = stage.wait(
        lambda: next((each for each in ("first", "second") if not stage.gates(each)), ""), "a name"
    )
    other = "second" if lifted == "first" else "first"
    stage.stays(lambda: bool(stage.gates(other)), 0.5, f"the gate of {other}")
    schedule(stage, lifted, node, 0)
    assert named(stage, other) == node


def test_a_name_that_the_next_pod_cannot_have_goes_to_the_one_after(
    stage: Stage, nominate: Nominate
) -> None:
    node, other = stage.add_node(cards(0)), stage.add_node(cards(0, 1))
    for second, (name, count) in enumerate((("first", 1), ("large", 3), ("small", 1))):
        gated_by_age(stage, name, second, count=count)
    nominate(nomination_limit=1)
    assert named(stage, "first") == node
    schedule(stage, "first", node, 0)
    assert named(stage, "small") == other
    keeps_gate(stage, "large")


def test_metrics_tell_whether_names_are_followed(stage: Stage, nominate: Nominate) -> None:
    node, other = stage.add_node(cards(0)), stage.add_node(cards(0, 1))
    replica = nominate()
    followed = partial(replica.metric, "gcu_controller_nominated_pods_bound_total")
    start(stage, "first")
    assert named(stage, "first") == node
    schedule(stage, "first", node, 0)
    stage.wait(lambda: followed(followed="true") == 1, "a followed name")
    start(stage, "second")
    assert named(stage, "second") == other
    schedule(stage, "second", other, 0)
    stage.wait(lambda: followed(followed="true") == 2, "two followed names")
    assert replica.metric("gcu_controller_nominated_pods") == 0


def test_names_that_kube_scheduler_writes_itself_are_not_counted(
    stage: Stage, nominate: Nominate
) -> None:
    """It names the node of a pod that it binds. The pod came without a gate."""
    node = stage.add_node(cards(0, 1))
    stage.start("ungated")
    stage.set_status(PODS, "ungated", {"nominatedNodeName": node})
    replica = nominate()
    start(stage, "user")
    assert named(stage, "user") == node
    stage.bind_to("ungated", node)
    schedule(stage, "user", node, 1)
    followed = partial(replica.metric, "gcu_controller_nominated_pods_bound_total")
    stage.wait(lambda: followed(followed="true") > 0, "the named pod counted")
    assert followed(followed="true") == 1


def test_without_nomination_gates_are_lifted(stage: Stage, nominate: Nominate) -> None:
    stage.add_node([])
    nominate(nomination=False)
    start(stage, "user")
    assert named(stage, "user") == ""
    assert not stage.api.all(RESOURCE_CLAIMS)[0].get("status")


LIMITS = pytest.mark.parametrize(
    "limit",
    [RESOURCE_WHOLE, f"{CLASS_LIMIT_PREFIX}{CLASS_WHOLE}"],
    ids=["the vendor's", "of a DeviceClass"],
)


@pytest.fixture
def served_by_scheduler(stage: Stage) -> None:
    """The class as the chart has it with `legacyResources.servedByScheduler`."""
    card = CLASSES[CLASS_WHOLE]
    spec = card["spec"] | {"extendedResourceName": RESOURCE_WHOLE}
    stage.api.put(DEVICE_CLASSES, card | {"spec": spec})


def start_by_limit(stage: Stage, limit: str, *pods: str) -> None:
    """Pods whose claim kube-scheduler makes itself."""
    for pod in pods:
        resources = {"limits": {limit: "1"}, "requests": {limit: "1"}}
        container = {"name": "main", "image": "busybox", "resources": resources}
        stage.add_pod(pod, schedulingGates=GATES, containers=[container])


def make_claim(stage: Stage, pod: str) -> str:
    """kube-scheduler makes the claim, before it allocates it; gives the claim's name."""
    found = stage.pod(pod)["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": found["uid"]}
    made = claim(f"{pod}-extended-resources-x", stage.namespace)
    made["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    made["spec"]["devices"]["requests"][0]["name"] = "container-0-request-0"
    stage.add_made_claim(made)
    name = str(made["metadata"]["name"])
    stage.set_status(PODS, pod, {"extendedResourceClaimStatus": {"resourceClaimName": name}})
    return name


@LIMITS
@pytest.mark.usefixtures("served_by_scheduler")
def test_limits_that_kube_scheduler_serves(stage: Stage, nominate: Nominate, limit: str) -> None:
    """What it will take counts, until it has taken it; then that counts."""
    node, other = stage.add_node(cards(0)), stage.add_node(cards(0, 1))
    nominate()
    start_by_limit(stage, limit, "first")
    assert named(stage, "first") == node
    start_by_limit(stage, limit, "second")
    assert named(stage, "second") == other
    schedule(stage, "first", node, 0, make_claim(stage, "first"))
    start(stage, "third")
    assert named(stage, "third") == other
    start(stage, "fourth")
    keeps_gate(stage, "fourth")
    stage.end("first")
    assert named(stage, "fourth") == node


@LIMITS
@pytest.mark.usefixtures("served_by_scheduler")
def test_limits_without_room_wait_with_a_reason(
    stage: Stage, nominate: Nominate, limit: str
) -> None:
    node = stage.add_node(cards(0))
    nominate()
    start(stage, "first")
    assert named(stage, "first") == node
    start_by_limit(stage, limit, "second")
    keeps_gate(stage, "second")
    schedule(stage, "first", node, 0)
    stage.end("first")
    assert named(stage, "second") == node


def test_it_counts_how_pods_come(stage: Stage, nominate: Nominate) -> None:
    """Those that were there before this replica led do not count."""
    node = stage.add_node(cards(0, 1, 2))
    start(stage, "old")
    replica = nominate()
    assert named(stage, "old") == node
    start(stage, "gated")
    assert named(stage, "gated") == node
    stage.start("alone")
    arrived = partial(replica.metric, "gcu_controller_arrived_pods_total")
    stage.wait(lambda: arrived(gated="false"), "a pod without the gate")
    assert (arrived(gated="true"), arrived(gated="false")) == (1, 1)


def test_names_stop_where_kube_scheduler_does_not_follow(
    stage: Stage, nominate: Nominate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_names, "_WINDOW", 2)
    nodes = {stage.add_node(cards(0, 1, 2)) for _ in range(2)}
    replica = nominate()
    assert replica.metric("gcu_controller_names_stopped") == 0
    for name in ("first", "second"):
        start(stage, name)
        [other] = nodes - {named(stage, name)}
        schedule(stage, name, other, 2)
    stage.wait_for_event("replica-0", "fewer than half", "GcuNodeNamesStopped")
    assert replica.metric("gcu_controller_names_stopped") == 1
    start(stage, "third")
    assert named(stage, "third") == ""
    assert stage.pod("third")["spec"]["affinity"]["nodeAffinity"]


def gated_by_age(stage: Stage, name: str, second: int, count: int = 1) -> None:
    """The claim for so many cards and the pod of that name, and of that age."""
    stage.add_claim(name, count=count)
    made = pod_with(name, stage.namespace, name, schedulingGates=GATES)
    made["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{second:02}Z"
    stage.put_pod(made)


def test_a_large_claim_is_not_passed_by_for_ever(stage: Stage, nominate: Nominate) -> None:
    """Two cards on one node: what is freed there is kept for the pod that is first in line."""
    nominate(fairness_patience=0.3)
    node = stage.add_node(cards(0, 1))
    for number, name in enumerate(("small-0", "small-1")):
        start(stage, name)
        assert named(stage, name) == node
        schedule(stage, name, node, number)
    stage.add_claim("large", count=2)
    stage.add_pod("large", "large", schedulingGates=GATES)
    stage.wait_for_event("large", "2 cards: 2 held")
    stage.stays(lambda: bool(stage.gates("large")), 0.4, "waiting")
    start(stage, "small-2")
    stage.wait_for_event("small-2", f"{stage.namespace}/large")
    stage.end("small-0")
    stage.stays(lambda: bool(stage.gates("small-2")), 0.3, "one card kept")
    stage.end("small-1")
    assert named(stage, "large") == node
    assert stage.gates("small-2")


def test_a_freed_card_goes_by_age(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    nominate()
    start(stage, "holder")
    assert named(stage, "holder") == node
    schedule(stage, "holder", node, 0)
    for name, second in (("younger", 2), ("older", 1)):
        gated_by_age(stage, name, second)
        keeps_gate(stage, name)
    stage.end("holder")
    assert named(stage, "older") == node
    assert stage.gates("younger")


def asking(cpu: str) -> list[Object]:
    """The containers of a pod."""
    resources = {"requests": {"cpu": cpu}}
    return [{"name": "main", "image": "x", "resources": resources}]


def test_no_node_is_named_that_kube_scheduler_would_refuse(
    stage: Stage, nominate: Nominate
) -> None:
    """The pod keeps its gate, and is named when another pod has ended."""
    node = stage.add_node(cards(0))
    stage.add_pod("other", containers=asking("60"), nodeName=node)
    nominate()
    stage.start("user", schedulingGates=GATES, containers=asking("60"))
    keeps_gate(stage, "user")
    assert any("1 without free cpu" in said for said in stage.events_about("user"))
    stage.end("other")
    assert named(stage, "user") == node


def test_where_others_must_end_kube_scheduler_chooses(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    stage.add_pod("other", containers=asking("60"), nodeName=node)
    nominate()
    stage.start("urgent", schedulingGates=GATES, containers=asking("60"), priority=10)
    assert named(stage, "urgent") == ""
    polite = {"priority": 10, "preemptionPolicy": "Never"}
    stage.start("polite", schedulingGates=GATES, containers=asking("60"), **polite)
    keeps_gate(stage, "polite")


def test_replicas_that_depend_on_each_other_are_lifted_in_their_order(
    stage: Stage, nominate: Nominate
) -> None:
    for _ in range(3):
        stage.add_node(cards(*range(8)))
    rule = {
        "topologyKey": "machine",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    names = [f"pod-{number:02}" for number in range(12)]
    for name in names:
        stage.add_claim(name)
        made = pod_with(name, stage.namespace, name, schedulingGates=GATES)
        made["spec"]["topologySpreadConstraints"] = [rule]
        owner = {"kind": "ReplicaSet", "name": "x", "uid": "uid-x", "controller": True}
        made["metadata"] |= {"labels": {"app": "x"}, "ownerReferences": [owner]}
        stage.put_pod(made)
    nominate()
    nodes = [named(stage, name) for name in names]
    assert sorted(nodes.count(each) for each in set(nodes)) == [4, 4, 4]
    lifted = [
        change.new["metadata"]["name"]
        for change in stage.api.store.after(stage.api.store.oldest)
        if change.key.resource is PODS
        and change.new is not None
        and change.old is not None
        and has_gate(change.old)
        and not has_gate(change.new)
    ]
    of_nodes = [dict(zip(names, nodes, strict=True))[name] for name in lifted]
    assert lifted == sorted(lifted)
    assert all(len(set(of_nodes[at : at + 3])) == 3 for at in range(0, 12, 3))
