"""Does to a running cluster what a plan says, and undoes it: from outside, without the API server,
which may be away."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
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

Done = Iterator[str]


class Faults:
    """What can be done to one cluster."""

    def __init__(self, driver: Installation) -> None:
        self._driver = driver
        self._cluster = driver.cluster
        self._ways: Mapping[Fault, Callable[[Disturbance], AbstractContextManager[str]]] = {
            Fault.AGENT_KILLED: self._agent_killed,
            Fault.AGENT_STOPPED: self._agent_stopped,
            Fault.CONTROLLER_KILLED: self._controller_killed,
            Fault.CONTROLLER_STOPPED: self._controller_stopped,
            Fault.KUBELET_KILLED: self._kubelet_killed,
            Fault.KUBELET_STOPPED: self._kubelet_stopped,
            Fault.API_SERVER_KILLED: self._api_server_killed,
            Fault.API_SERVER_STOPPED: self._api_server_stopped,
            Fault.SCHEDULER_KILLED: self._scheduler_killed,
            Fault.SCHEDULER_STOPPED: self._scheduler_stopped,
            Fault.CARD_LOST: self._card_lost,
            Fault.CARD_UNHEALTHY: self._card_unhealthy,
            Fault.CDI_FILE_DELETED: self._cdi_file_deleted,
            Fault.WATCHES_CUT: self._watches_cut,
        }

    def of(self, disturbance: Disturbance) -> AbstractContextManager[str]:
        """Within it the disturbance lasts; gives what it hit, "" where there was nothing."""
        return self._ways[disturbance.fault](disturbance)

    def _node(self, disturbance: Disturbance) -> Node:
        return self._cluster.nodes[disturbance.node]

    @contextmanager
    def _agent_killed(self, disturbance: Disturbance) -> Done:
        yield _kill(_chosen(disturbance, _programs(self._node(disturbance), "agent")))

    @contextmanager
    def _agent_stopped(self, disturbance: Disturbance) -> Done:
        with _halted(_chosen(disturbance, _programs(self._node(disturbance), "agent"))) as hit:
            yield hit

    @contextmanager
    def _controller_killed(self, disturbance: Disturbance) -> Done:
        yield _kill(_chosen(disturbance, self._controllers()))

    @contextmanager
    def _controller_stopped(self, disturbance: Disturbance) -> Done:
        with _halted(_chosen(disturbance, self._controllers())) as hit:
            yield hit

    def _controllers(self) -> list[Process]:
        """Wherever they run."""
        nodes = self._cluster.nodes
        return [process for node in nodes for process in _programs(node, "controller")]

    @contextmanager
    def _kubelet_killed(self, disturbance: Disturbance) -> Done:
        node = self._node(disturbance)
        process = self._cluster.processes.get(node.component("kubelet"))
        process.send(signal.SIGKILL)
        process.stop()
        try:
            yield node.name
        finally:
            node.start_kubelet()

    @contextmanager
    def _kubelet_stopped(self, disturbance: Disturbance) -> Done:
        name = self._node(disturbance).component("kubelet")
        with stopped(self._cluster, name):
            yield name

    @contextmanager
    def _api_server_killed(self, disturbance: Disturbance) -> Done:
        with away(self._cluster, _API_SERVER):
            yield _API_SERVER

    @contextmanager
    def _api_server_stopped(self, disturbance: Disturbance) -> Done:
        with stopped(self._cluster, _API_SERVER):
            yield _API_SERVER

    @contextmanager
    def _scheduler_killed(self, disturbance: Disturbance) -> Done:
        with away(self._cluster, SCHEDULER):
            yield SCHEDULER

    @contextmanager
    def _scheduler_stopped(self, disturbance: Disturbance) -> Done:
        with stopped(self._cluster, SCHEDULER):
            yield SCHEDULER

    @contextmanager
    def _card_lost(self, disturbance: Disturbance) -> Done:
        machine = self._driver.machine(self._node(disturbance).name)
        cards = [card.bdf for card in machine.state().cards]
        card = cards[disturbance.number % len(cards)]
        machine.lose_card(card)
        try:
            yield card
        finally:
            machine.restore_card(card)

    @contextmanager
    def _card_unhealthy(self, disturbance: Disturbance) -> Done:
        machine = self._driver.machine(self._node(disturbance).name)
        cards = [card.bdf for card in machine.state().cards]
        card = cards[disturbance.number % len(cards)]
        machine.set_card(card, health=False)
        try:
            yield card
        finally:
            machine.set_card(card, health=True)

    @contextmanager
    def _cdi_file_deleted(self, disturbance: Disturbance) -> Done:
        folder = self._node(disturbance).host_path("/var/run/cdi")
        files = sorted(folder.glob(f"{DRIVER}*"))
        chosen = files[disturbance.number % len(files)] if files else None
        if chosen:
            chosen.unlink(missing_ok=True)
        yield chosen.name if chosen else ""

    @contextmanager
    def _watches_cut(self, disturbance: Disturbance) -> Done:
        """All of the API server's connections are closed by the kernel (CONFIG_INET_DIAG_DESTROY):
        those of watches above all, as others are short."""
        network = enter(self._cluster.processes.get(NETWORK))
        chosen = ["state", "established", "sport", "=", f":{_API_PORT}"]
        lines = run([*network, "ss", "--kill", "--no-header", "--tcp", *chosen]).splitlines()
        yield f"{len(lines)} connections" if lines else ""


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


def _kill(process: Process | None) -> str:
    return str(process.pid) if process and process.send(signal.SIGKILL) else ""


@contextmanager
def _halted(process: Process | None) -> Iterator[str]:
    if process is None or not process.send(signal.SIGSTOP):
        yield ""
        return
    try:
        yield str(process.pid)
    finally:
        process.send(signal.SIGCONT)
