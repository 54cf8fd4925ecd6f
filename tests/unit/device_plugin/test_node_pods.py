"""Which pods wait, and which have ended, by two sources of which one may be late."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dra_driver.device_plugin.node_pods import NodePods
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Unavailable
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode

STATIC = "0123456789abcdef" * 2


def pod(name: str, phase: str = "Running", *states: str) -> Any:
    """With a container in each of these states."""
    return {
        "metadata": {"namespace": "team", "name": name, "uid": f"uid-{name}"},
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": "main", "state": {state: {}}} for state in states],
        },
    }


def recorded(who: str) -> Recorded:
    return Recorded(who, "main", RESOURCES[Mode.DRS], frozenset(("one",)))


@pytest.mark.parametrize(
    ("told", "read", "who", "stays"),
    [
        ([pod("a")], [], "uid-a", True),
        ([pod("a")], [], "team/a", True),
        ([], [pod("a")], "uid-a", True),
        ([], [pod("a")], "team/a", True),
        ([], [], "uid-a", False),
        ([], [], "team/a", False),
        ([], [pod("b")], "uid-a", False),
        ([], [pod("a", "Pending")], "uid-a", True),
        ([pod("a", "Failed")], [pod("a", "Failed")], "uid-a", False),
        ([], [pod("a", "Failed", "running")], "uid-a", True),
        ([], [pod("a", "Succeeded", "terminated")], "uid-a", False),
        ([], [], STATIC, True),
    ],
    ids=[
        "it is there",
        "by its name",
        "the watch has not told of it yet",
        "nor of its name",
        "it is gone",
        "its name is gone",
        "another one is there",
        "it waits",
        "it failed",
        "it failed, and runs on",
        "it came to its end",
        "static",
    ],
)
def test_what_is_left(told: list[Any], read: list[Any], who: str, stays: bool) -> None:
    pods = NodePods(lambda: read)
    pods.on_replace(told)
    assert list(pods.without_ended([recorded(who)])) == [recorded(who)] * stays


def test_before_the_watch_has_told_the_kubelets_word_stands() -> None:
    assert list(NodePods(list).without_ended([recorded("uid-a")])) == [recorded("uid-a")]


def test_without_the_api_server_the_kubelets_word_stands() -> None:
    def away() -> list[Any]:
        raise Unavailable("the API server did not answer")

    pods = NodePods(away)
    pods.on_replace([])
    assert list(pods.without_ended([recorded("uid-a")])) == [recorded("uid-a")]


def test_a_watch_tells_which_pods_wait() -> None:
    pods = NodePods()
    pods.on_replace([pod("a", "Pending"), pod("b")])
    pods.on_event(Change.ADDED, pod("c", "Pending"))
    assert [each["metadata"]["name"] for each in pods.waiting()] == ["a", "c"]
    pods.on_event(Change.DELETED, pod("a", "Pending"))
    pods.on_event(Change.MODIFIED, pod("c"))
    assert pods.waiting() == []


def test_pods_wait_in_the_order_in_which_they_came() -> None:
    """As the kubelet hears of them; a change of one is no news of it."""
    old, new = pod("z", "Pending"), pod("y", "Pending")
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    new["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    pods = NodePods()
    pods.on_replace([new, old])
    pods.on_event(Change.ADDED, pod("b", "Pending"))
    pods.on_event(Change.ADDED, pod("a", "Pending"))
    pods.on_event(Change.MODIFIED, pod("b", "Pending"))
    assert [each["metadata"]["name"] for each in pods.waiting()] == ["z", "y", "b", "a"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "told",
    [
        lambda pods: pods.on_event(Change.ADDED, pod("a", "Pending")),
        lambda pods: pods.on_replace([pod("a", "Pending")]),
    ],
    ids=["by an event", "by a list"],
)
def test_a_pod_is_awaited_until_the_watch_tells_of_it(told: Callable[[NodePods], None]) -> None:
    """Told of between the first question and the next one."""
    pods, asked = NodePods(lag=lambda: 3600.0), []

    def is_there(found: Collection[Any]) -> bool:
        asked.append(len(found))
        if len(asked) == 1:
            pool.submit(told, pods)  # comes in when the lock is free: while it is waited for
        return bool(found)

    with ThreadPoolExecutor(1) as pool:
        assert pods.wait_for(is_there)
    assert asked == [0, 1]


@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed"])
def test_a_pod_that_has_ended_is_none_that_is_awaited(phase: str) -> None:
    pods = NodePods()
    pods.on_replace([pod("a", phase)])
    assert pods.wait_for(bool) == (phase != "Failed")
