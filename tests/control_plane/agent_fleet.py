"""Many whole agents in this process, each on a Node of its own, with the rights of its pod.

Their cards are one simulated machine that all share; `efsmi` is in memory. A played kubelet calls
them over their sockets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from dra_driver.agent.agent import Agent
from dra_driver.agent.lifecycle import serving_mode
from dra_driver.agent.settings import AgentSettings
from dra_driver.kube import watch
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import NODES, PODS, Resource
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.effects import Effects
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.simulator.machine import SimulatedMachine
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod
from tests.control_plane.driver import account
from tests.kill.grants import Claims, Grant
from tests.kill.kubelet import Kubelet
from tests.unit.memory_efsmi import MemoryEfsmi

CARDS: Final = tuple(PciAddress.parse(f"0000:{bus:02x}:00.0") for bus in range(0x10, 0x18))
USER_AGENT: Final = "gcu-dra-agent/"

_EVERY: Final = (
    (watch, "_WATCH_SECONDS"),
    (serving_mode, "_CHECK_EVERY"),
)
_CARE_SECONDS: Final = 60.0
_NEVER: Final = 86400.0
_AT_ONCE: Final = 16
_TOKENS: Final = Resource("", "v1", f"serviceaccounts/{account('agent')}/token", "Token", True)


@dataclass(slots=True)
class FleetAgent:
    """One agent; `start` may follow on `stop`."""

    node: str
    claims: Claims
    settings: AgentSettings
    _kubeconfig: Path
    reconcile_interval: float = _CARE_SECONDS
    _client: Client | None = None
    _agent: Agent | None = None

    def start(self) -> None:
        """Begin; returns when the kubelet has registered it."""
        self._client = connect(
            self._kubeconfig, effects=Effects(), user_agent=f"{USER_AGENT}{self.node}"
        )
        settings = self.settings.model_copy(update={"reconcile_interval": self.reconcile_interval})
        self._agent = Agent(settings, self._client, effects=Effects())
        self._agent.start()
        self.kubelet.wait(PATIENCE)

    def stop(self) -> None:
        if self._agent is not None and self._client is not None:
            self._agent.stop()
            self._client.close()
            self._agent = self._client = None

    def wait_ready(self) -> None:
        agent = self._agent
        assert agent is not None
        wait_until(
            lambda: agent.ready() is None, PATIENCE, self.node, seen=lambda: agent.ready() or ""
        )

    @property
    def kubelet(self) -> Kubelet:
        return Kubelet(Sockets.of(self.settings.kubelet_root).registration)

    def prepare(self, name: str, card: PciAddress) -> ClaimRef:
        """A claim for that whole card, prepared, once its status shows what it was given."""
        ref = self.claims.add(name, Grant(Mode.WHOLE, card))
        kubelet = self.kubelet
        kubelet.wait(PATIENCE)
        assert kubelet.prepare(ref) == ""
        wait_until(lambda: self.claims.told(ref), PATIENCE, f"the status of {ref}")
        return ref

    def unprepare(self, ref: ClaimRef) -> None:
        kubelet = self.kubelet
        kubelet.wait(PATIENCE)
        assert kubelet.unprepare(ref) == ""
        self.claims.delete(ref)


@dataclass(frozen=True, slots=True)
class Fleet:
    """All agents; each method does the same with all, many at a time."""

    agents: Sequence[FleetAgent]
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_AT_ONCE))

    def start(self) -> None:
        """Returns when all are ready."""
        self._all(FleetAgent.start)
        self._all(FleetAgent.wait_ready)

    def stop(self) -> None:
        self._all(FleetAgent.stop)

    def wait_ready(self) -> None:
        self._all(FleetAgent.wait_ready)

    @contextmanager
    def lapsed(self, lapse: float) -> Iterator[None]:
        """Agents that start meanwhile do so many times as often what they do at rest. They must
        have been stopped by its end."""
        with ExitStack() as stack:
            for module, name in _EVERY:
                stack.enter_context(patch.object(module, name, getattr(module, name) / lapse))
            for agent in self.agents:
                agent.reconcile_interval = _CARE_SECONDS / lapse
            yield
        for agent in self.agents:
            agent.reconcile_interval = _CARE_SECONDS

    def prepare(self, name: str, card: PciAddress) -> list[ClaimRef]:
        return [
            *self._pool.map(lambda agent: agent.prepare(f"{name}-{agent.node}", card), self.agents)
        ]

    def unprepare(self, refs: Sequence[ClaimRef]) -> None:
        [*self._pool.map(FleetAgent.unprepare, self.agents, refs)]

    def _all(self, act: Any) -> None:
        [*self._pool.map(act, self.agents)]


@contextmanager
def fleet(
    cluster: Cluster, api: Client, root: Path, *, count: int, namespace: str
) -> Iterator[Fleet]:
    """`count` agents that were not started. `cluster` has the chart installed; `namespace` takes
    the claims; `root` has a short path."""
    with ExitStack() as stack:
        stack.enter_context(patch("dra_driver.agent.context.Efsmi", _in_memory))
        described = [{"bdf": str(card), "model": "S60"} for card in CARDS]
        machine = SimulatedMachine.create(
            {"cards": described}, root / "machine", plain_device_files=True
        )
        make = _Maker(cluster, api, root, machine, namespace)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = Fleet([*pool.map(make.agent, range(count))])
        stack.callback(found.stop)
        yield found


def _in_memory(_path: Path, *, effects: Effects, **_limits: object) -> MemoryEfsmi:
    found = MemoryEfsmi.of(*map(str, CARDS))
    found.effects = effects
    return found


@dataclass(frozen=True, slots=True)
class _Maker:
    cluster: Cluster
    api: Client
    root: Path
    machine: SimulatedMachine
    namespace: str

    def agent(self, number: int) -> FleetAgent:
        node = f"fleet-{number}"
        folder = self.root / str(number)
        for each in ("plugins", "plugins_registry"):
            (folder / "kubelet" / each).mkdir(parents=True)
        self._node(node)
        settings = AgentSettings.model_validate(
            {
                "node_name": node,
                "host_root": self.machine.root,
                "efsmi_path": str(self.machine.efsmi_path),
                "kubelet_root": folder / "kubelet",
                "cdi_dir": folder / "cdi",
                "presence_interval": _NEVER,
                "inventory_interval": _NEVER,
            }
        )
        return FleetAgent(
            node, Claims(self.api, self.namespace, node), settings, self._kubeconfig(node, folder)
        )

    def _node(self, name: str) -> None:
        self.api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        ready = {"type": "Ready", "status": "True", "reason": "Declared"}
        info = {"kubeletVersion": str(self.api.server_version())}
        status = {"conditions": [ready], "nodeInfo": info}
        self.api.patch(NODES, name, {"status": status}, subresource="status")

    def _kubeconfig(self, node: str, folder: Path) -> Path:
        """With the token of the agent's pod on the node."""
        body = pod(f"agent-{node}", DRIVER_NAMESPACE, nodeName=node)
        body["spec"]["serviceAccountName"] = account("agent")
        made = self.api.create(PODS, body)["metadata"]
        reference = {"apiVersion": "v1", "kind": "Pod", "name": made["name"], "uid": made["uid"]}
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"namespace": DRIVER_NAMESPACE},
            "spec": {"boundObjectRef": reference, "expirationSeconds": 86400},
        }
        token = self.api.create(_TOKENS, request)["status"]["token"]
        content = json.loads(self.cluster.kubeconfig.read_text())
        content["users"] = [{"name": content["users"][0]["name"], "user": {"token": token}}]
        path = folder / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(content))
        return path
