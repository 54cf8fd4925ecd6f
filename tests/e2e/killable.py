"""Agents in their pods on a real cluster that can be killed at any named effect."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.processes import Process
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e import fatal_agent
from tests.e2e.installation import CHECKOUT, RELEASE, Installation
from tests.kill.moments import Moment, give_order

_SYSTEM = f"--namespace={DRIVER_NAMESPACE}"
_AGENTS = f"daemonset/{RELEASE}-agent"
_SOURCES = ("tests/e2e/fatal_agent.py", "tests/kill/moments.py")
_NEVER = "86400"
RELEASE_INTERVAL: Final = 1
"""Seconds between looks at which containers have ended; 10 by default."""

# Looks at the cards beside the first would be moments by chance.
_ENVIRONMENT = {
    "PYTHONPATH": fatal_agent.FOLDER,
    "GCU_PRESENCE_INTERVAL": _NEVER,
    "GCU_INVENTORY_INTERVAL": _NEVER,
    "GCU_RECONCILE_INTERVAL": _NEVER,
    "GCU_RELEASE_INTERVAL": str(RELEASE_INTERVAL),
}
_PATCH = {
    "containers": [
        {
            "name": "agent",
            "command": ["python3", "-m", fatal_agent.__name__],
            "env": [{"name": name, "value": value} for name, value in _ENVIRONMENT.items()],
            "volumeMounts": [{"name": "kill", "mountPath": fatal_agent.FOLDER}],
        }
    ],
    "volumes": [{"name": "kill", "hostPath": {"path": fatal_agent.FOLDER, "type": "Directory"}}],
}


class KillableAgent:
    """The agent of one node, whichever pod it runs in."""

    def __init__(self, driver: Installation, node: str) -> None:
        self._driver = driver
        self._cluster = driver.cluster
        self._node = driver.cluster.node(node)
        self.folder = self._node.host_path(fatal_agent.FOLDER)
        self._reached = self.folder / fatal_agent.REACHED
        self._order = self.folder / fatal_agent.ORDER

    def lay(self) -> None:
        """Put on the node what the pods run; an order of before is none."""
        for former in (self._order, self._reached):
            former.unlink(missing_ok=True)
        for source in _SOURCES:
            place = self.folder / source
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / source, place)

    def trace(self) -> list[str]:
        """Every moment that agents have passed here, oldest first."""
        return (self.folder / fatal_agent.TRACE).read_text().splitlines()

    def order(self, moment: Moment) -> None:
        """Let it halt at that moment, counted from now."""
        self._reached.unlink(missing_ok=True)
        give_order(self._order, moment)

    def revoke(self) -> None:
        """No agent that starts from now on halts."""
        self._order.unlink()

    def has_halted(self) -> bool:
        return self._reached.exists()

    def kill(self) -> None:
        """SIGKILL, from the node; all processes of its container go with it. Returns when the
        kubelet knows that another one runs. Raises WaitTimeout."""
        pod, container = self._running()
        tasks = [line.split() for line in self._node.ctr("tasks", "list").splitlines()[1:]]
        [pid] = [int(number) for task, number, *_ in tasks if task == container]
        assert Process.of(pid).send(signal.SIGKILL)
        wait_until(
            lambda: self._running() not in {(pod, container), (pod, "")},
            PATIENCE,
            "another container of the agent",
        )

    def renew(self) -> None:
        """Let another pod come in place of this one, whose container was never killed: from the
        second end on a kubelet waits longer each time. Returns at once."""
        name = self._driver.agent_pod(self._node.name)
        brief = ("--grace-period=1", "--wait=false")
        self._cluster.kubectl("delete", "pod", name, _SYSTEM, *brief)

    def _running(self) -> tuple[str, str]:
        """The pod's name, and the ID of its running container, empty where none runs."""
        name = self._driver.agent_pod(self._node.name)
        pod = self._cluster.get("pod", name, _SYSTEM)
        [status] = pod["status"]["containerStatuses"]
        if "running" not in status["state"]:
            return name, ""
        return name, str(status["containerID"].removeprefix("containerd://"))


@contextmanager
def killable(driver: Installation) -> Iterator[dict[str, KillableAgent]]:
    """Within it the agents can be killed; by node. Afterwards they are the chart's again."""
    agents = {node: KillableAgent(driver, node) for node in driver.machines}
    for agent in agents.values():
        agent.lay()
    patch = json.dumps({"spec": {"template": {"spec": _PATCH}}})
    driver.cluster.kubectl("patch", _SYSTEM, _AGENTS, f"--patch={patch}")
    try:
        driver.wait_for_agents()
        yield agents
    finally:
        driver.cluster.kubectl("rollout", "undo", _SYSTEM, _AGENTS)
        driver.wait_for_agents()
