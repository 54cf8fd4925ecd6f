"""What a command makes of the API server's answers."""

from __future__ import annotations

from controller.cache import pods
from controller.leaderelection.fence import Fence
from controller.write.commands import Answer, LiftGate
from controller.write.node_hint import NodeHint
from controller.write.writer import Writer
from dra_driver.kube.errors import Forbidden
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from tests.fake_api.api import FakeApi
from tests.unit.controller.world import pod

GATED: Object = {"schedulingGates": [{"name": SCHEDULING_GATE}]}


def executed(api: FakeApi, command: LiftGate) -> Answer:
    """By the leader."""
    fence = Fence(lambda: 0.0)
    fence.open_until(1.0, "1")
    fence.accept()
    return Writer(api, fence, api.server_version).begin(command)()


def stored(api: FakeApi) -> Object:
    [found] = api.all(PODS)
    return found


def test_another_pod_of_that_name_keeps_its_gate() -> None:
    """A StatefulSet's next pod comes as soon as the former one is deleted."""
    api = FakeApi()
    former = api.put(PODS, pod("p", "c", **GATED))
    following = pod("p", "c", **GATED)
    following["metadata"]["uid"] = "uid-of-the-following"
    api.put(PODS, following)
    assert executed(api, LiftGate(key=pods.key_of(former), pod=former)) == Answer(pod=None)
    assert stored(api)["spec"]["schedulingGates"] == GATED["schedulingGates"]


def test_another_pod_of_that_name_is_told_of_no_node() -> None:
    api = FakeApi()
    former = api.put(PODS, pod("p", "c", **GATED))
    following = pod("p", "c", **GATED)
    following["metadata"]["uid"] = "uid-of-the-following"
    api.put(PODS, following)
    for hint in NodeHint:
        command = LiftGate(key=pods.key_of(former), pod=former, node="n", hint=hint)
        assert executed(api, command) == Answer(pod=None)
    assert not pods.nominated_node(stored(api))
    assert pods.has_our_gate(stored(api))


def test_a_name_is_written_before_the_gate_goes() -> None:
    api = FakeApi()
    gated = api.put(PODS, pod("p", "c", **GATED))
    answer = executed(api, LiftGate(key=pods.key_of(gated), pod=gated, node="n"))
    written = [each.new for each in api.store.after(int(gated["metadata"]["resourceVersion"]))]
    assert [
        (pods.nominated_node(each or {}), pods.has_our_gate(each or {})) for each in written
    ] == [
        ("n", True),
        ("n", False),
    ]
    assert answer == Answer(pod=stored(api))


def test_an_affinity_is_added_to_those_of_the_pod() -> None:
    api = FakeApi()
    own = {"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [own]}
    gated = api.put(PODS, pod("p", "c", affinity={"nodeAffinity": preferred}, **GATED))
    command = LiftGate(key=pods.key_of(gated), pod=gated, node="n", hint=NodeHint.AFFINITY)
    assert executed(api, command).pod == stored(api)
    [first, second] = stored(api)["spec"]["affinity"]["nodeAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert (first, second["weight"]) == (own, 100)
    assert second["preference"] == {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
    }
    assert not pods.has_our_gate(stored(api))


def test_a_refused_name_keeps_no_pod_waiting() -> None:
    """Somebody's admission may refuse it, or upstream may reserve the field one day."""
    api = FakeApi()
    gated = api.put(PODS, pod("p", "c", **GATED))
    refusal = Forbidden("only kube-scheduler may set nominatedNodeName", status=403)
    api.faults.refuse(refusal, "patch", resource=PODS)
    answer = executed(api, LiftGate(key=pods.key_of(gated), pod=gated, node="n"))
    assert answer.hint_refused is refusal
    assert answer.pod == stored(api)
    assert (pods.nominated_node(stored(api)), pods.has_our_gate(stored(api))) == ("", False)
