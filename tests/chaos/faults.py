"""Does to a running cluster what a plan says, and undoes it: from outside, without the API server,
which may be away."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from dra_driver.model.names import DRIVER
from tests.chaos.plan import Disturbance, Fault
from tests.cluster.network import NETWORK, enter
from tests.cluster.node import Node
from tests.cluster.processes import Process, run
from tests.control_plane.components import SCHEDULER, away, stopped
from tests.e2e.installation import Installation

_API_SERVER: Final = "kube-apiserver"
_API_PORT: Final = 6443
_CONTAINER: Final = 'labels."io.kubernetes.container.name"=={}'

Ways = Mapping[Fault, Callable[[], AbstractContextManager[str]]]


class Faults:
    """What can be done to one cluster."""

    def __init__(self, driver: Installation) -> None:
        self._driver = driver
        self._cluster = driver.cluster

    def of(self, disturbance: Disturbance) -> AbstractContextManager[str]:
        """Within it the disturbance lasts; gives what it hit, "" where there was nothing."""
        ways = {**self._of_processes(disturbance), **self._of_things(disturbance)}
        return ways[disturbance.fault]()

    def _of_processes(self, disturbance: Disturbance) -> Ways:
        node = self._cluster.nodes[disturbance.node]
        kubelet = node.component("kubelet")

        def agent() -> Process | None:
            return _chosen(disturbance, _programs(node, "agent"))

        def controller() -> Process | None:
            nodes = self._cluster.nodes
            found = [each for one in nodes for each in _programs(one, "controller")]
            return _chosen(disturbance, found)

        def halted(name: str) -> AbstractContextManager[str]:
            return _hitting(name, stopped(self._cluster, name))

        def gone(name: str) -> AbstractContextManager[str]:
            return _hitting(name, away(self._cluster, name))

        return {
            Fault.AGENT_KILLED: lambda: _killed(agent()),
            Fault.AGENT_STOPPED: lambda: _halted(agent()),
            Fault.CONTROLLER_KILLED: lambda: _killed(controller()),
            Fault.CONTROLLER_STOPPED: lambda: _halted(controller()),
            Fault.KUBELET_KILLED: lambda: self._kubelet_away(node),
            Fault.KUBELET_STOPPED: lambda: halted(kubelet),
            Fault.API_SERVER_KILLED: lambda: gone(_API_SERVER),
            Fault.API_SERVER_STOPPED: lambda: halted(_API_SERVER),
            Fault.SCHEDULER_KILLED: lambda: gone(SCHEDULER),
            Fault.SCHEDULER_STOPPED: lambda: halted(SCHEDULER),
        }

    def _of_things(self, disturbance: Disturbance) -> Ways:
        node = self._cluster.nodes[disturbance.node]
        return {
            Fault.CARD_LOST: lambda: self._card(disturbance, node, lost=True),
            Fault.CARD_UNHEALTHY: lambda: self._card(disturbance, node, health=False),
            Fault.CDI_FILE_DELETED: lambda: _hitting(_delete_cdi_file(disturbance, node)),
            Fault.WATCHES_CUT: lambda: _hitting(self._cut_connections()),
        }

    @contextmanager
    def _kubelet_away(self, node: Node) -> Iterator[str]:
        process = self._cluster.processes.get(node.component("kubelet"))
        process.send(signal.SIGKILL)
        process.stop()
        try:
            yield node.component("kubelet")
        finally:
            node.start_kubelet()

    @contextmanager
    def _card(self, disturbance: Disturbance, node: Node, **key: bool) -> Iterator[str]:
        """A card has that key, and afterwards the other value of it."""
        machine = self._driver.machine(node.name)
        cards = machine.state().cards
        card = cards[disturbance.number % len(cards)].bdf
        machine.set_card(card, **key)
        try:
            yield card
        finally:
            machine.set_card(card, **{name: not value for name, value in key.items()})

    def _cut_connections(self) -> str:
        """The kernel closes all of the API server's (it needs CONFIG_INET_DIAG_DESTROY): those of
        watches above all, as others are short."""
        network = enter(self._cluster.processes.get(NETWORK))
        chosen = ["state", "established", "sport", "=", f":{_API_PORT}"]
        lines = run([*network, "ss", "--kill", "--no-header", "--tcp", *chosen]).splitlines()
        return f"{len(lines)} connections" if lines else ""


def _delete_cdi_file(disturbance: Disturbance, node: Node) -> str:
    files = sorted(node.host_path("/var/run/cdi").glob(f"{DRIVER}*"))
    if not files:
        return ""
    chosen = files[disturbance.number % len(files)]
    chosen.unlink(missing_ok=True)
    return chosen.name


@contextmanager
def _hitting(hit: str, within: AbstractContextManager[None] | None = None) -> Iterator[str]:
    with within or nullcontext():
        yield hit


def _programs(node: Node, container: str) -> list[Process]:
    """The first processes of the node's running containers of that name."""
    names = set(node.ctr("containers", "list", "--quiet", _CONTAINER.format(container)).split())
    found = []
    for line in node.ctr("tasks", "list").splitlines()[1:]:
        task, pid, status = line.split()
        if task in names and status == "RUNNING" and Path("/proc", pid).exists():
            found.append(Process.of(int(pid)))
    return found


def _chosen(disturbance: Disturbance, found: list[Process]) -> Process | None:
    return found[disturbance.number % len(found)] if found else None


@contextmanager
def _killed(process: Process | None) -> Iterator[str]:
    yield str(process.pid) if process and process.send(signal.SIGKILL) else ""


@contextmanager
def _halted(process: Process | None) -> Iterator[str]:
    if process is None or not process.send(signal.SIGSTOP):
        yield ""
        return
    try:
        yield str(process.pid)
    finally:
        process.send(signal.SIGCONT)
