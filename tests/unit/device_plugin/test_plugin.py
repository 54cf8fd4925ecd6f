"""The whole device plugin between a kubelet's device manager and the simulator's cards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import pytest

from dra_driver.device_plugin.node_pods import NodePods
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2 as api
from dra_driver.model.mode import Mode
from tests.unit.device_plugin.plugin_node import DRS, ONE, SHARED, TWO, WHOLE, Late, Node
from tests.unit.device_plugin.plugin_world import ids, waiting_pod
from tests.unit.kubelet_api.device_plugin.device_manager import AdmissionError, Entry
from tests.unit.node.world import CARDS

CHECKOUT: Final = Path(__file__).parents[3]

Make = Callable[..., Node]


@pytest.fixture
def make_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(**how: Any) -> Node:
            node = Node(tmp_path_factory.mktemp("k"), **how)  # a short path
            stack.callback(node.kubelet.stop)
            stack.callback(node.stop)
            return node

        yield make


@pytest.fixture
def node(make_node: Make) -> Node:
    return make_node()


def test_the_kinds_of_a_card_shrink_and_grow_together(node: Node) -> None:
    node.kubelet.admit("a", "main", SHARED, 2)
    node.becomes(1, 12, 6)
    node.kubelet.admit("b", "main", DRS, 3)
    node.becomes(0, 6, 6)
    assert (node.profiles(ONE), node.profiles(TWO)) == ([], ["3g.20gb"])
    node.kubelet.end("a")
    node.becomes(1, 6, 12)
    node.kubelet.end("b")
    node.becomes(2, 12, 12)
    assert (node.agent.held(), node.profiles(TWO), node.world.files()) == ({}, [], {})


def test_a_kubelet_that_keeps_the_last_pod_on_record(make_node: Make) -> None:
    there = [{"metadata": {"namespace": "team", "name": "a", "uid": "uid-a"}}]
    pods = NodePods(lambda: list(there))
    pods.on_replace([])  # late
    node = make_node(pods=pods)
    node.kubelet.admit("a", "main", DRS, 3)
    node.becomes(1, 6, 12)
    node.kubelet.end("a")
    there.clear()
    node.becomes(2, 12, 12)
    assert (node.profiles(ONE), node.world.files()) == ([], {})


waits = partial(waiting_pod, resource=SHARED)


def test_the_cards_of_a_pod_are_the_plugins_choice(make_node: Make) -> None:
    """A kubelet that gets no preference takes the last ones here."""
    node = make_node(cards=4)
    node.kubelet.admit("a", "main", WHOLE, 2)
    assert [each.devices for each in node.kubelet.entries] == [
        {*ids(0, Mode.WHOLE, 0), *ids(1, Mode.WHOLE, 0)}
    ]


def test_whether_pods_with_devices_of_others_have_ended_is_not_read(make_node: Make) -> None:
    """That would be a list of the node's pods from the API server at each look."""
    there = [waits("a", ONE, 2)]
    read = Mock(return_value=there)
    pods = NodePods(read)
    pods.on_replace(there)
    node = make_node(pods=pods)
    node.kubelet.admit("a", "main", SHARED, 2)
    node.kubelet.active.add("unknown")
    node.kubelet.entries.append(Entry("unknown", "main", "example.com/nic", frozenset({"nic-0"})))
    lists = node.kubelet.endpoints[SHARED].lists
    node.kubelet.until(lambda: node.kubelet.endpoints[SHARED].lists > lists + 4, "no looks")
    read.assert_not_called()


def test_a_pod_of_which_the_kubelet_hears_first_comes_to_its_card(make_node: Make) -> None:
    """Without the pod its first container would come to the card with the fewest slices left, and
    its second one to another."""
    node = make_node(pods=Late(waits("a", ONE, 4), waits("b", TWO, 2, 1)))
    for pod, container, slices in (("a", "c0", 4), ("b", "c0", 2), ("b", "c1", 1)):
        node.kubelet.admit(pod, container, SHARED, slices)
    held = [
        (each.pod, device.partition("/")[0])
        for each in node.kubelet.entries
        for device in each.devices
    ]
    assert set(held) == {("a", ONE), ("b", TWO)}


def test_containers_of_a_pod_stay_together_whichever_pod_comes_first(make_node: Make) -> None:
    """Each was placed on a card, and the kubelet takes on the one first for which the other's card
    is preferred."""
    pods = NodePods()
    pods.on_replace([waits("a", ONE, 2, 4), waits("b", TWO, 2, 1)])
    node = make_node(pods=pods)
    for pod, slices in (("b", (2, 1)), ("a", (2, 4))):
        for at, amount in enumerate(slices):
            node.kubelet.admit(pod, f"c{at}", SHARED, amount)
    cards = {
        pod: {
            device.partition("/")[0]
            for each in node.kubelet.entries
            if each.pod == pod
            for device in each.devices
        }
        for pod in ("a", "b")
    }
    assert [len(each) for each in cards.values()] == [1, 1], cards


def test_an_init_container_keeps_its_instance_until_the_pod_ends(node: Node) -> None:
    """The pod-resources API does not list it; the checkpoint does."""
    node.kubelet.admit("a", "init", DRS, 1, init=True)
    lists = node.kubelet.endpoints[DRS].lists
    # Each look makes the kubelet write its checkpoint by a list.
    node.kubelet.until(lambda: node.kubelet.endpoints[DRS].lists > lists + 4, "no looks")
    assert node.profiles(ONE) == ["1g.6gb"]
    node.kubelet.end("a")
    node.becomes(2, 12, 12)


def test_pods_stay_while_the_kubelet_is_away(node: Node) -> None:
    """Where it registers the plugin before it looks at its pods, for which it does not wait."""
    node.kubelet.admit("a", "init", DRS, 1, init=True)
    node.kubelet.stop()
    node.kubelet.start()
    node.kubelet.until(node.is_known, "not registered again")
    node.becomes(1, 6, 12)
    node.kubelet.readmit("a")
    assert node.profiles(ONE) == ["1g.6gb"]
    node.kubelet.end("a")
    node.becomes(2, 12, 12)


def test_a_restart_of_the_kubelet_ends_pods_whose_init_containers_have_limits(node: Node) -> None:
    """The page quotes the message. The pod's instance is destroyed, and others stay."""
    page = (CHECKOUT / "docs/user/device-plugin.md").read_text(encoding="utf-8")
    node.kubelet.admit("ends", "init", DRS, 1, init=True)
    node.kubelet.admit("ends", "main", DRS, 1)
    node.kubelet.admit("stays", "main", DRS, 3)
    node.kubelet.stop()
    node.kubelet.forget_plugins()
    with pytest.raises(AdmissionError) as ended:
        node.kubelet.readmit("ends")
    node.kubelet.readmit("stays")
    assert f"| `{ended.value}` |".replace(DRS, "…") in page
    node.kubelet.start()
    node.kubelet.until(node.is_known, "not registered again")
    node.kubelet.until(lambda: node.profiles(ONE) == ["3g.20gb"], "the instance stays")


def test_a_pod_that_goes_while_the_agent_is_away(node: Node) -> None:
    node.kubelet.admit("stays", "main", SHARED, 2)
    node.kubelet.admit("goes", "main", DRS, 3)
    node.stop()
    node.kubelet.end("goes")
    node.start()
    node.becomes(1, 12, 6)
    assert (node.profiles(TWO), list(node.agent.held().values())) == ([], ["prepared"])


def test_what_is_wrong_is_told(node: Node) -> None:
    assert node.plugin.problem() is None
    assert node.plugin.ended() is None
    node.stop()
    assert node.plugin.ended() == "plugin-watch"


def test_forty_eight_pods_at_once(make_node: Make) -> None:
    """24 instances, and each of these calls a second time beside the first; the kubelet is told of
    what is left after each of them."""
    node = make_node(cards=4, release_interval=60)
    told = len(node.told)
    stub = node.kubelet.endpoints[DRS].stub

    def allocate(at: int) -> int:
        devices = ids(at % 4, Mode.DRS, at // 4 % 6)
        request = api.AllocateRequest(
            container_requests=[api.ContainerAllocateRequest(devices_ids=devices)]
        )
        return len(stub.Allocate(request, timeout=20).container_responses)

    with ThreadPoolExecutor(48) as pool:
        assert sum(pool.map(allocate, range(48))) == 48
    assert [len(node.profiles(str(card))) for card in CARDS] == [6] * 4
    assert len(node.told) == told + 48
    assert len(node.agent.held()) == 24
    assert not node.world.tool.refusals
