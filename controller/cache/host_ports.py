"""Host ports: which ones a pod takes of its node, and on which nodes each is taken."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from controller.allocator.nodes.node_set import NodeNumbers, NodeSet

_ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - what the API means by none


class HostPort(NamedTuple):
    """A port of the node that a container listens on, at an address or at all of them."""

    protocol: str
    number: int
    address: str

    def __str__(self) -> str:
        return f"{self.number}/{self.protocol}"

    def conflicts(self, addresses: Iterable[str]) -> bool:
        """Whether it cannot be had beside the same port at one of the addresses (kube-scheduler,
        HostPortInfo.CheckConflict)."""
        return self.address == _ALL_ADDRESSES or any(
            each in (_ALL_ADDRESSES, self.address) for each in addresses
        )


def host_ports(pod: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """Those of containers that run for good (kube-scheduler, util.GetHostPorts)."""
    return tuple(sorted(set(_host_ports(pod["spec"]))))


def prune(spec: Mapping[str, Any]) -> None:
    """Remove from a pod's spec the ports that `host_ports` does not read."""
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            if "ports" in container:
                read = [port for port in container.pop("ports") or () if port.get("hostPort")]
                if read:
                    container["ports"] = read


def _host_ports(spec: Mapping[str, Any]) -> Iterator[HostPort]:
    sidecars = (
        each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
    )
    for container in (*sidecars, *(spec.get("containers") or ())):
        for port in container.get("ports") or ():
            if number := port.get("hostPort"):
                address = port.get("hostIP") or _ALL_ADDRESSES
                yield HostPort(port.get("protocol") or "TCP", number, address)


class HostPorts:
    """One instance, one thread."""

    def __init__(self, numbers: NodeNumbers) -> None:
        self._numbers = numbers
        self._users: dict[tuple[str, int], defaultdict[str, Counter[str]]] = {}
        """By protocol and port, by node: the addresses, with their users."""

    def add(self, node: str, ports: Iterable[HostPort], users: int) -> None:
        """So many more pods of the node, or fewer, have these ports."""
        for port in ports:
            by_node = self._users.setdefault(port[:2], defaultdict(Counter))
            by_node[node][port.address] += users
            by_node[node] = +by_node[node]
            if not by_node[node]:
                del by_node[node]
            if not by_node:
                del self._users[port[:2]]

    def nodes_without(self, port: HostPort) -> NodeSet:
        """The nodes where it cannot be had. Pods may name nodes that do not exist."""
        taken: Mapping[str, Counter[str]] = self._users.get(port[:2], {})
        return self._numbers.set_of(
            [
                node
                for node, addresses in taken.items()
                if node in self._numbers and port.conflicts(addresses)
            ]
        )
