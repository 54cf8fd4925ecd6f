"""Which addresses a cluster uses. Clusters differ in the slot alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from tests.cluster.errors import ClusterError

SERVICE_SUBNET = IPv4Network("10.96.0.0/16")
API_SERVICE = SERVICE_SUBNET[1]
DNS_SERVICE = SERVICE_SUBNET[10]  # pods get it into resolv.conf; nobody answers there
POD_SUBNET = IPv4Network("10.88.0.0/16")

_CLUSTERS = IPv4Network("10.77.0.0/16")
MAX_NODES = 200


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of the cluster in slot 0..255.

    Only the subnet of the machines differs between slots: it alone is known outside the
    cluster's network namespaces, to the machine itself, which has the last address of it.
    """

    slot: int

    @property
    def subnet(self) -> IPv4Network:
        return list(_CLUSTERS.subnets(new_prefix=24))[self.slot]

    @property
    def control_plane(self) -> IPv4Address:
        return self.subnet[1]

    @property
    def host(self) -> IPv4Address:
        return self.subnet[254]

    def node(self, number: int) -> IPv4Address:
        """Of node 1, 2, …"""
        return self.subnet[1 + number]

    @staticmethod
    def pods(number: int) -> IPv4Network:
        """The pod subnet of node 1, 2, …"""
        return list(POD_SUBNET.subnets(new_prefix=24))[number]


def free_slot(taken: Iterable[int], routes: Iterable[IPv4Network]) -> int:
    """The lowest slot that no cluster has and whose subnet the machine does not use otherwise.

    Raises ClusterError when there is none.
    """
    used, networks = set(taken), tuple(routes)
    for slot in range(256):
        subnet = Addresses(slot).subnet
        if slot not in used and not any(subnet.overlaps(network) for network in networks):
            return slot
    raise ClusterError(
        f"no subnet of {_CLUSTERS} is free for another cluster; "
        "`python -m tests.cluster list` shows the clusters there are"
    )
