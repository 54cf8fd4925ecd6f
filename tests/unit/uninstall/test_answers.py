"""What the pods tell of their nodes, and what people are told of it."""

from __future__ import annotations

from dra_driver.model.claim import Object
from dra_driver.uninstall.answers import NOTHING_LEFT, Answers


def pod(node: str, *, bound: bool = True, phase: str = "Pending", **state: Object) -> Object:
    """One of the DaemonSet, whose first container is in that state."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    status: Object = {"phase": phase}
    if state:
        status["initContainerStatuses"] = [{"state": state}]
    return {
        "metadata": {"name": f"pod-of-{node}", "ownerReferences": [{"uid": "uid-sweep"}]},
        "spec": {"affinity": affinity, **({"nodeName": node} if bound else {})},
        "status": status,
    }


def ended(node: str, words: str = NOTHING_LEFT, code: int = 0) -> Object:
    state = {"exitCode": code, "message": words, "reason": "Error" if code else "Completed"}
    return pod(node, phase="Running", terminated=state)


def test_last_words_are_an_answer() -> None:
    answers = Answers.of([ended("a"), ended("b", "it holds claim x"), ended("c", "")], 3)
    assert answers.left == {"a": "", "b": "it holds claim x", "c": "it says nothing"}
    assert answers.are_all


def test_others_are_waited_for() -> None:
    pods = [
        pod("unbound", bound=False),
        pod("pulling", waiting={"reason": "ImagePullBackOff"}),
        pod("works", running={"startedAt": "now"}),
        ended("fails", "a trace", code=1),
    ]
    answers = Answers.of(pods, 4)
    assert not answers.left
    assert answers.awaited == {
        "unbound": "pod pod-of-unbound is Pending",
        "pulling": "pod pod-of-pulling is ImagePullBackOff",
        "works": "pod pod-of-works is Pending",
        "fails": "pod pod-of-fails is Error",
    }
    assert not answers.are_all


def test_a_pod_that_was_replaced_counts_for_its_node() -> None:
    answers = Answers.of([pod("a"), ended("a"), pod("a")], 1)
    assert (answers.left, answers.awaited, answers.missing) == ({"a": ""}, {}, 0)


def test_pods_that_are_not_made_yet_are_waited_for() -> None:
    answers = Answers.of([ended("a")], 3)
    assert answers.missing == 2
    assert not answers.are_all


def test_a_node_that_is_down_or_gone_is_not_waited_for() -> None:
    answers = Answers.of([pod("up"), pod("down"), pod("gone")], 3).knowing(
        {"up": True, "down": False}
    )
    assert answers.awaited.keys() == {"up", "down"}
    assert not answers.are_all
    assert Answers.of([pod("down"), pod("gone")], 2).knowing({"down": False}).are_all


def test_people_are_told_what_is_left_and_where() -> None:
    assert str(Answers.of([ended("a")], 1)) == "Nothing of the driver is left on 1 node."
    pods = [ended("a"), ended("e"), ended("b", "it holds x"), pod("d"), pod("c")]
    told = Answers.of(pods, 6).knowing({"c": False, "d": True})
    first, *lines = str(told).splitlines()
    assert first.startswith("Nothing of the driver is left on 2 nodes. Elsewhere there may be")
    assert lines == [
        "  node b: it holds x",
        "  node c: it is not ready",
        "  node d: pod pod-of-d is Pending",
        "  1 more: no pod could be made there",
    ]
