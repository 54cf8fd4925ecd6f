"""Host ports: which ones a pod takes of its node, and on which nodes each is taken."""

from __future__ import annotations

from collections import Counter
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
        self._version = numbers.version
        self._users: dict[tuple[str, int], dict[str, Counter[str]]] = {}
        """By protocol and port, by address: the nodes, with their users."""
        self._nodes: dict[HostPort, NodeSet] = {}  # of those that were asked for

    def add(self, node: str, ports: Iterable[HostPort], users: int) -> None:
        """So many more pods of the node, or fewer, have these ports."""
        for port in ports:
            by_address = self._users.setdefault(port[:2], {})
            counts = by_address.setdefault(port.address, Counter())
            counts[node] += users
            if not counts[node]:
                del counts[node]
            self._update(port, node, taken=node in counts)
            if not counts:
                del by_address[port.address]
            if not by_address:
                del self._users[port[:2]]

    def nodes_without(self, port: HostPort) -> NodeSet:
        """The nodes where it cannot be had (kube-scheduler, HostPortInfo.CheckConflict)."""
        taken = 0
        for address in self._users.get(port[:2], ()):
            if _ALL_ADDRESSES in (address, port.address) or address == port.address:
                taken |= self._nodes_of(port._replace(address=address))
        return taken

    def _nodes_of(self, port: HostPort) -> NodeSet:
        """The nodes where exactly this one is taken. Pods may name nodes that do not exist."""
        if self._version != self._numbers.version:
            self._version = self._numbers.version
            self._nodes.clear()
        nodes = self._nodes.get(port)
        if nodes is None:
            named = self._users[port[:2]][port.address]
            present = [node for node in named if node in self._numbers]
            nodes = self._nodes[port] = self._numbers.set_of(present)
        return nodes

    def _update(self, port: HostPort, node: str, *, taken: bool) -> None:
        nodes = self._nodes.get(port)
        if nodes is None or node not in self._numbers:
            return
        bit = self._numbers.bit(node)
        self._nodes[port] = nodes | bit if taken else nodes & ~bit
        if not self._nodes[port]:
            del self._nodes[port]
