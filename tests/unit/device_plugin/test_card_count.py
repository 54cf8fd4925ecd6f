"""The count of a node's cards, between a kubelet's device manager and cards that come and go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dra_driver.device_plugin.card_count import CardCount
from dra_driver.model.names import RESOURCE_COUNT
from dra_driver.model.pci import PciAddress
from tests.unit.kubelet_api.device_plugin.device_manager import AdmissionError, DeviceManager

CARDS = tuple(PciAddress.parse(f"0000:{bus}:00.0") for bus in ("0d", "0e", "0f"))


class Node:
    """`cards` are None while they have not been read."""

    def __init__(self, kubelet: DeviceManager) -> None:
        self.kubelet = kubelet
        self.cards: set[PciAddress] | None = None
        self.counts: list[CardCount] = []

    def start(self) -> CardCount:
        count = CardCount(lambda: self.cards, folders=self.kubelet.folders)
        self.counts.append(count)
        count.serve()
        return count

    def becomes(self, *cards: PciAddress) -> None:
        wanted = sorted(map(str, cards))
        self.kubelet.until(
            lambda: (
                RESOURCE_COUNT in self.kubelet.endpoints
                and self.kubelet.ids(RESOURCE_COUNT) == wanted
            ),
            f"{wanted}, not {self.kubelet.ids(RESOURCE_COUNT)}",
        )


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    kubelet = DeviceManager(tmp_path_factory.mktemp("k"))  # a short path
    kubelet.start()
    made = Node(kubelet)
    yield made
    for count in made.counts:
        count.stop(0)
    kubelet.stop()


def test_the_kubelet_counts_what_is_there(node: Node) -> None:
    node.cards = set(CARDS[:2])
    count = node.start()
    node.becomes(*CARDS[:2])
    for cards in (CARDS, CARDS[1:], ()):
        node.cards = set(cards)
        count.wake()
        node.becomes(*cards)
    assert count.ended() is None


def test_it_hears_of_no_cards_before_they_were_read(node: Node) -> None:
    count = node.start()
    count.wake()
    with node.kubelet.news:
        assert not node.kubelet.news.wait_for(lambda: bool(node.kubelet.registered), 0.3)
    node.cards = set(CARDS)
    count.wake()
    node.becomes(*CARDS)
    assert sorted(node.kubelet.endpoints[RESOURCE_COUNT].first) == sorted(map(str, CARDS))


def test_who_asks_for_it_is_counted_and_gets_nothing(node: Node) -> None:
    node.cards = set(CARDS)
    node.start()
    node.becomes(*CARDS)
    answer = node.kubelet.admit("a", "main", RESOURCE_COUNT, 2)
    assert (list(answer.devices), list(answer.cdi_devices), dict(answer.envs)) == ([], [], {})
    with pytest.raises(AdmissionError, match="Available: 1"):
        node.kubelet.admit("b", "main", RESOURCE_COUNT, 2)


def test_one_that_is_not_served_is_silent(node: Node) -> None:
    count = CardCount(lambda: CARDS, folders=node.kubelet.folders)
    count.wake()
    count.stop(0)
    assert count.ended() is None
    assert not list(node.kubelet.folders.plugins.glob("*count*"))
