"""The agent as a whole: what it serves with cards and an API server, and without them."""

from __future__ import annotations

import pytest

from tests.unit.agent.node import CARDS, Node
from tests.unit.hanging import reads_that_hang, time_is_up_when
from tests.unit.kubelet_api import fake_kubelet

FILE = "gcu.enflame.com-claim-uid-one.json"


def test_a_claim_on_a_running_node(node: Node) -> None:
    agent = node.started()
    ref = node.api.add("one", card=0)
    [device] = node.prepare(ref).devices
    assert device.device_name == "whole-0000-0d-00-0"
    assert '"ENFLAME_VISIBLE_DEVICES=0"' in node.files()[FILE]
    assert agent.live() is None
    node.unprepare(ref)
    assert node.files() == {}


def test_without_hardware_pods_can_still_end(node: Node) -> None:
    node.started()
    ref = node.api.add("one", card=0)
    node.prepare(ref)
    node.stop()
    node.machine.set_machine(driverLoaded=False)
    agent = node.started()
    fake_kubelet.notify(node.sockets.registration, registered=True)
    assert "kernel driver is not loaded" in str(agent.ready())
    assert agent.live() is None
    new = node.api.add("two", card=1)
    refused = node.prepare(new).error
    assert "no usable card 0000:0e:00.0: the GCU kernel driver is not loaded" in refused
    assert node.unprepare(ref).error == ""
    assert node.files() == {}


def test_without_an_api_server_running_pods_lack_nothing(node: Node) -> None:
    node.started()
    ref = node.api.add("one", card=0)
    first = node.prepare(ref)
    node.stop()
    node.api.away = True
    agent = node.started()
    fake_kubelet.notify(node.sockets.registration, registered=True)
    assert node.prepare(ref) == first
    new = node.api.add("two", card=1)
    refused = node.prepare(new).error
    assert "the API server did not answer" in refused
    assert node.unprepare(ref).error == ""
    assert agent.live() is None


def test_the_kubelet_hears_of_a_lost_card_at_once(node: Node) -> None:
    """The list holds what a claim holds, whether the API server answers or not."""
    agent = node.started()
    node.prepare(node.api.add("one", card=0))
    with fake_kubelet.watch(node.sockets.service) as lists:
        [well] = next(lists).devices
        assert (well.device.device_name, well.health) == ("whole-0000-0d-00-0", 1)
        node.machine.lose_card(CARDS[0])
        agent._cards.tick()
        [lost] = next(lists).devices
        assert (lost.device, lost.health) == (well.device, 2)
        assert lost.message == "card 0000:0d:00.0: gone from the PCI bus"


def test_a_card_that_hangs_is_ill_and_the_agent_serves(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also an agent that starts while it hangs, which knows nothing of that card."""
    time_is_up_when(monkeypatch, reads_that_hang(node.machine))
    agent = node.started()
    ref = node.api.add("one", card=1)
    node.prepare(ref)
    node.machine.set_fault("card-hangs", card=CARDS[1])
    with fake_kubelet.watch(node.sockets.service) as lists:
        assert [each.health for each in next(lists).devices] == [1]
        agent._cards.refresh()
        [ill] = next(lists).devices
        assert (ill.device.device_name, ill.health) == ("whole-0000-0e-00-0", 2)
        assert "efsmi does not answer for it" in ill.message
    assert agent._cards.problem is None
    assert agent.live() is None
    agent.stop()
    agent = node.started()
    assert agent._cards.problem is None
    assert agent.live() is None
    other = node.api.add("two", card=0)
    for each in (other, ref):
        assert node.prepare(each).error == ""
        assert node.unprepare(each).error == ""
    assert node.files() == {}
