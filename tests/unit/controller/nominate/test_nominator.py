"""Pods of no group, while kube-scheduler allocates: their names, and what becomes of them."""

from __future__ import annotations

import copy
from typing import Any

from controller.cache.pods import BINDING_LIMIT
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.names import CLASS_LIMIT_PREFIX, CLASS_WHOLE
from tests.unit.controller.allocator.build import allocated
from tests.unit.controller.nominate.test_group_nominator import Cluster, asking, taken
from tests.unit.controller.test_pod_groups import OURS
from tests.unit.controller.world import FAIRNESS, pod, reserved


class Singles(Cluster):
    """As `Cluster`, with pods that are members of no group."""

    def ask_for_card(self, *names: str, **spec: Any) -> list[str]:
        """Gated pods for a card each. Returns the nodes that are named for them."""
        self.join("", *names, schedulingGroup=None, **spec)
        self.run_until_idle()
        return self.named(*names)

    def bind_to(self, name: str, node: str) -> None:
        bound = copy.deepcopy(self.api.live[PODS, name])
        bound["spec"]["nodeName"] = node
        self.put(PODS, bound)
        self.run_until_idle()

    def followed(self, word: str) -> float:
        """How many pods were bound whose node was named, by whether it is that node."""
        counted = "gcu_controller_nominated_pods_bound_total"
        return self.metric(counted, {"followed": word})


def test_a_name_that_was_refused_and_has_no_room_any_more_is_not_counted() -> None:
    """kube-scheduler binds the pod later, where it likes."""
    world = Singles({"a": 1, "b": 0})
    assert world.ask_for_card("p") == ["a"]
    taken(world, "a", 0)
    world.refuse("p", lose="p")
    world.run_until_idle()
    world.bind_to("p", "b")
    assert world.followed("false") == 0


def test_pods_that_nobody_schedules_use_up_the_limit_no_longer() -> None:
    """Whatever else comes meanwhile."""
    world = Singles({"a": 2}, nomination_limit=1)
    assert world.ask_for_card("p") == ["a"]
    assert world.ask_for_card("q") == [""]
    world.after(BINDING_LIMIT / 2)
    world.change("p", phase="Pending")
    world.after(BINDING_LIMIT / 2 - 1)
    assert world.named("q") == [""]
    world.after(1)
    assert world.named("q") == ["a"]


def test_a_gang_that_nobody_schedules_holds_its_cards_no_longer() -> None:
    world = Singles({"a": 2}, gang=2)
    world.join("g", *"pq")
    world.run_until_idle()
    assert world.named("p", "q") == ["a", "a"]
    assert world.ask_for_card("r") == [""]
    world.after(BINDING_LIMIT)
    assert world.named("r") == ["a"]


def test_a_pod_that_is_tried_too_late_is_not_counted() -> None:
    """Another one is named for the card by then."""
    world = Singles({"a": 1, "b": 0})
    assert world.ask_for_card("p") == ["a"]
    assert world.ask_for_card("q") == [""]
    world.after(BINDING_LIMIT)
    assert world.named("p", "q") == ["a", "a"]
    world.bind_to("p", "b")
    assert world.followed("false") == 0


def test_what_waits_with_its_gate_keeps_no_name() -> None:
    """A former leader wrote it, and was killed before it lifted the gate; the card was taken since.
    kube-scheduler and autoscalers would count the pod there."""
    world = Singles({"a": 1})
    taken(world, "a", 0)
    assert world.ask_for_card("p", status={"nominatedNodeName": "a"}) == [""]
    assert world.gated("p") == ["p"]
    assert "1 held" in world.notes_of("Pod", "p")[-1]


def test_what_may_not_have_its_devices_keeps_no_name() -> None:
    """The former leader knew another version of the claim's class."""
    world = Singles({"a": 1})
    odd = asking("c-p")
    odd["spec"]["devices"]["requests"][0]["exactly"]["unknownField"] = 1
    world.put(RESOURCE_CLAIMS, odd)
    world.put(PODS, pod("p", "c-p", status={"nominatedNodeName": "a"}, schedulingGates=[OURS]))
    world.run_until_idle()
    assert world.named("p") == [""]
    assert "unknownField" in world.notes_of("Pod", "p")[-1]


def test_a_new_leader_names_pods_before_it_checks_claims_in_use() -> None:
    """Only for devices that are allocated twice, and a cluster has tens of thousands of them."""
    world = Singles({"a": 2})
    world.fence.close()
    for name in ("first", "second"):
        found = reserved(allocated(f"c-{name}", "a", "whole-0000-00-00-0"), name)
        world.put(RESOURCE_CLAIMS, found)
        world.put(PODS, pod(name, f"c-{name}", nodeName="a"))
    world.join("", "p", schedulingGroup=None)
    world.run_until_idle()
    world.lead("2")
    world.run_until_idle()
    conflicts = "gcu_controller_conflicting_allocations"
    assert (world.named("p"), world.metric(conflicts)) == (["a"], 0)
    world.bind("p")
    world.run_until_idle()
    world.after(1)
    assert world.metric(conflicts) == 2


class ByLimits(Singles):
    """The pod `p` was named for the only card by a limit that kube-scheduler makes a claim for, and
    is bound to `a`. The watch of claims has reported none. `q` waits for the card."""

    def __init__(self, *, is_made: bool) -> None:
        super().__init__({"a": 1})
        limits = {f"{CLASS_LIMIT_PREFIX}{CLASS_WHOLE}": "1"}
        resources = {"limits": limits, "requests": limits}
        containers = [{"name": "main", "resources": resources}]
        self.put(PODS, pod("p", schedulingGates=[OURS], containers=containers))
        self.run_until_idle()
        assert self.named("p") == ["a"]
        assert self.ask_for_card("q") == [""]
        if is_made:
            self.change("p", extendedResourceClaimStatus={"resourceClaimName": "made"})
        self.bind_to("p", "a")


def test_limits_that_another_device_plugin_serves_hold_nothing() -> None:
    """kube-scheduler bound the pod without a claim."""
    assert ByLimits(is_made=False).named("q") == ["a"]


def test_a_claim_for_limits_counts_before_it_is_seen() -> None:
    world = ByLimits(is_made=True)
    world.after(FAIRNESS)
    assert world.named("q") == [""]


def test_a_claim_for_limits_that_is_never_seen_holds_nothing_once_its_pod_is_gone() -> None:
    """It came and went while the watch of claims was away."""
    world = ByLimits(is_made=True)
    world.remove(PODS, "p")
    world.after(20)
    assert world.named("q") == ["a"]


def test_a_claim_for_limits_that_is_never_seen_holds_nothing_once_its_pod_has_ended() -> None:
    world = ByLimits(is_made=True)
    world.change("p", phase="Succeeded")
    world.after(20)
    assert world.named("q") == ["a"]


class FromTemplate(Singles):
    """The pod `p` came, and kube-controller-manager has not made its claim yet."""

    def __init__(self) -> None:
        super().__init__({"a": 1})
        made = pod("p", "c-p", schedulingGates=[OURS])
        made["spec"]["resourceClaims"] = [{"name": "c-p", "resourceClaimTemplateName": "card"}]
        self.put(PODS, made)
        self.run_until_idle()

    def make_claim(self) -> None:
        made = asking("c-p-x")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
        self.put(RESOURCE_CLAIMS, made)
        self.change("p", resourceClaimStatuses=[{"name": "c-p", "resourceClaimName": "c-p-x"}])
        self.run_until_idle()


def test_a_claim_that_is_made_for_the_pod_may_come_late() -> None:
    """kube-controller-manager makes ten a second: here 400 pods were before this one."""
    world = FromTemplate()
    world.after(40)
    assert world.gated("p") == ["p"]
    world.make_claim()
    assert world.named("p") == ["a"]


def test_a_pod_whose_claim_is_never_made_does_not_keep_its_gate() -> None:
    world = FromTemplate()
    world.after(50)
    assert (world.gated("p"), world.named("p")) == ([], [""])


def test_a_claim_that_somebody_has_yet_to_create_is_not_waited_for() -> None:
    world = Singles({"a": 1})
    world.put(PODS, pod("p", "missing", schedulingGates=[OURS]))
    world.run_until_idle()
    world.after(2)
    assert (world.gated("p"), world.named("p")) == ([], [""])
