"""A cluster's network: namespaces, one bridge between them, and a way in for the machine.

The namespaces have no names and no files: a process that sleeps in each holds it. When those
processes die, the kernel removes namespaces, links, addresses and routes with them, the
machine's own end of its veth pair included.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from tests.cluster.addresses import SERVICE_SUBNET, Addresses
from tests.cluster.processes import Process, ProcessTable, run
from tests.cluster.waiting import PATIENCE, wait_until

_BRIDGE = "machines"
_HOLD = """
if [ -n "$1" ]; then echo "$1" >/proc/sys/kernel/hostname; fi
if [ -n "$2" ]; then sh -eu "$2"; fi
touch "$3"
exec sleep infinity
"""
NETWORK = "network"
"""The component whose namespace has the bridge and in which the control plane runs."""


def host_link(slot: int) -> str:
    """The machine's own link to the cluster in that slot."""
    return f"gcu-dra-{slot}"


def machine_routes() -> tuple[IPv4Network, ...]:
    """The destinations of the machine's routes, without the default one."""
    found = json.loads(run(["ip", "-json", "-4", "route", "show", "table", "main"]) or "[]")
    return tuple(IPv4Network(route["dst"]) for route in found if route["dst"] != "default")


def enter(holder: Process, *, mounts: bool = False) -> list[str]:
    """The words to put before a command so that it runs in the holder's namespaces.

    Not `ip netns exec`: that mounts a new /sys, in which no control groups are mounted.
    """
    words = ["nsenter", f"--target={holder.pid}", "--net"]
    return [*words, "--mount", "--uts"] if mounts else words


def hold_namespaces(
    table: ProcessTable, name: str, *, setup: Path | None = None, hostname: str | None = None
) -> Process:
    """Start the process that holds new network, mount and host name namespaces.

    `setup` is a shell script that is run inside first, where mounts are private to it.
    """
    ready = table.log(name).with_suffix(".ready")
    ready.unlink(missing_ok=True)
    unshare = ["unshare", "--net", "--mount", "--uts", "--propagation", "private"]
    arguments = [hostname or "", str(setup or ""), str(ready)]
    holder = table.start(name, [*unshare, "sh", "-euc", _HOLD, "hold", *arguments])

    def done() -> bool:
        table.check(name)
        return ready.exists()

    wait_until(
        done, PATIENCE, f"namespaces of {name}", seen=lambda: table.tail(name), interval=0.01
    )
    ready.unlink()
    return holder


def connect_machine(holder: Process, addresses: Addresses) -> None:
    """Set up the bridge in the holder's namespace, and the machine's own link to it."""
    link = host_link(addresses.slot)
    _ip(["link", "add", link, "type", "veth", "peer", "name", "machine", "netns", str(holder.pid)])
    _inside(
        holder,
        ["link", "set", "lo", "up"],
        ["link", "add", _BRIDGE, "type", "bridge"],
        ["address", "add", f"{addresses.control_plane}/24", "dev", _BRIDGE],
        ["link", "set", _BRIDGE, "up"],
        ["link", "set", "machine", "master", _BRIDGE, "up"],
    )
    _ip(["address", "add", f"{addresses.host}/24", "dev", link])
    _ip(["link", "set", link, "up"])


def connect_node(network: Process, holder: Process, number: int, addresses: Addresses) -> None:
    """Give a node its eth0 on the bridge, and the control plane the way to its pods. By way of the
    first node, API servers reach the Services of webhooks: its kube-proxy masquerades what comes
    from no pod."""
    port = f"node{number}"
    pair = ["type", "veth", "peer", "name", "eth0", "netns", str(holder.pid)]
    node = addresses.node(number)
    ways = [addresses.pods(number), *([SERVICE_SUBNET] if number == 1 else [])]
    _inside(
        network,
        ["link", "add", port, *pair],
        ["link", "set", port, "master", _BRIDGE, "up"],
        *(["route", "add", str(way), "via", str(node)] for way in ways),
    )
    _inside(
        holder,
        ["link", "set", "lo", "up"],
        ["address", "add", f"{node}/24", "dev", "eth0"],
        ["link", "set", "eth0", "up"],
        # Nothing outside answers there; kube-proxy needs a route before it can rewrite one.
        ["route", "add", "default", "via", str(addresses.control_plane)],
    )
    run([*enter(holder), "tee", "/proc/sys/net/ipv4/ip_forward"], stdin="1")


def connect_pods(holder: Process, number: int, count: int, addresses: Addresses) -> None:
    """Give a node the ways to the other nodes' pods."""
    others = [other for other in range(1, count + 1) if other != number]
    routes: Iterable[tuple[IPv4Network, IPv4Address]] = (
        (addresses.pods(other), addresses.node(other)) for other in others
    )
    _inside(holder, *(["route", "add", str(pods), "via", str(via)] for pods, via in routes))


def _inside(holder: Process, *commands: Sequence[str]) -> None:
    batch = "".join(" ".join(command) + "\n" for command in commands)
    run([*enter(holder), "ip", "-batch", "-"], stdin=batch)


def _ip(command: Sequence[str]) -> None:
    run(["ip", *command])
