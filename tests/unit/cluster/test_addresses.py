"""Clusters of one machine have subnets that meet nothing else."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from tests.cluster.addresses import MAX_NODES, Addresses, free_slot
from tests.cluster.errors import ClusterError


def test_every_machine_has_an_address_of_its_own() -> None:
    addresses = Addresses(3)
    nodes = [addresses.node(number) for number in range(1, MAX_NODES + 1)]
    assert addresses.subnet == IPv4Network("10.77.3.0/24")
    assert len({addresses.control_plane, addresses.host, *nodes}) == MAX_NODES + 2
    assert all(address in addresses.subnet for address in nodes)


def test_pod_subnets_of_nodes_are_disjoint() -> None:
    pods = [Addresses.pods(number) for number in range(1, MAX_NODES + 1)]
    assert len(set(pods)) == MAX_NODES


@pytest.mark.parametrize(
    ("taken", "routes", "expected"),
    [
        pytest.param([], [], 0, id="first cluster"),
        pytest.param([0, 1, 3], [], 2, id="gap is filled"),
        pytest.param([], ["10.77.0.0/23"], 2, id="subnet of the machine"),
        pytest.param([2], ["10.77.0.0/23", "192.0.2.0/24"], 3, id="both"),
        pytest.param([0], ["10.77.1.7/32"], 2, id="single address"),
    ],
)
def test_free_slot(taken: list[int], routes: list[str], expected: int) -> None:
    assert free_slot(taken, map(IPv4Network, routes)) == expected


def test_no_free_slot() -> None:
    with pytest.raises(ClusterError, match="no subnet"):
        free_slot([], [IPv4Network("10.0.0.0/8")])
