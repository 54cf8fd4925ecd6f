"""One node for kill tests: simulated cards, a real agent process, a kubelet that is played."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from dra_driver.agent.slices.slices import own_slices
from dra_driver.kube.client import Client
from dra_driver.kube.resources import RESOURCE_SLICES
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.names import DRIVER, TAINT_FOREIGN
from dra_driver.model.pci import PciAddress
from dra_driver.simulator.machine import SimulatedMachine
from tests.cluster.waiting import wait_until
from tests.kill.grants import CARDS, FOREIGN, Claims, Grant, bystanders
from tests.kill.kubelet import Kubelet
from tests.kill.moments import Moment, give_order
from tests.kill.quick_efsmi import QuickEfsmi
from tests.kill.starter import AgentProcess

_START_SECONDS = 60.0
_NEVER = 86400.0
_ALL_DEVICES = 3 * (len(CARDS) + 1)
NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
# Looks at the node beside the first would be moments by chance.
_QUIET = {f"{look}-interval": _NEVER for look in ("presence", "inventory", "reconcile")}


class Node:
    """Its Node object `name` exists; `root` is a short path, as sockets lie below it.

    `held` is what is prepared or being prepared, as the kubelet knows it: by claim. `kubeconfig`
    is the agents'. Their ``efsmi`` is the simulator's unless one is given.
    """

    def __init__(
        self,
        name: str,
        root: Path,
        *,
        api: Client,
        namespace: str,
        kubeconfig: Path,
        efsmi: QuickEfsmi | None = None,
    ) -> None:
        self.name = name
        self.root = root
        self.api = api
        self.claims = Claims(api, namespace, name)
        self.held: dict[ClaimRef, Grant] = {}
        self.agents: list[AgentProcess] = []
        self.kubeconfig = kubeconfig
        self._efsmi = efsmi
        self._serial = 0
        self._pods = 0
        self.pod_uid = "pod-0"
        self.machine = self._new_machine()

    @property
    def agent(self) -> AgentProcess:
        """The one that was started last."""
        return self.agents[-1]

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def sockets(self) -> Sockets:
        return Sockets.of(self.root / "kubelet", self.pod_uid)

    @property
    def efsmi_path(self) -> Path:
        """What the agents call."""
        root = self.machine.root
        return self._efsmi.of(root) if self._efsmi else self.machine.efsmi_path

    @property
    def kubelet(self) -> Kubelet:
        """Calls the agent of the pod of now."""
        kubelet = Kubelet(self.sockets.registration)
        kubelet.wait(_START_SECONDS)
        return kubelet

    def log(self) -> str:
        path = self.root / "agent.log"
        return path.read_text() if path.exists() else ""

    def boot(self, order: Moment | None = None, flags: Mapping[str, object] = NOTHING) -> None:
        """Start an agent with these flags besides, which is to be killed at `order`."""
        name = f"agent-{len(self.agents)}"
        if order is not None:
            give_order(self.root / f"{name}.order", order)
        self.agents.append(AgentProcess(self.root, name, self.argv(flags)))

    def argv(self, flags: Mapping[str, object] = NOTHING) -> list[str]:
        """What an agent of this node is started with; a flag that is None is left out."""
        settings: dict[str, object] = {
            "node-name": self.name,
            "mode": "dra",  # no kubelet of the node says its version
            "host-root": self.machine.root,
            "efsmi-path": self.efsmi_path,
            "kubelet-root": self.root / "kubelet",
            "cdi-dir": self.cdi,
            "state-dir": self.state,
            "kubeconfig": self.kubeconfig,
            "pod-uid": self.pod_uid,
            "probe-port": 0,
            **_QUIET,
            **flags,
        }
        return [f"--{key}={value}" for key, value in settings.items() if value is not None]

    def up(self, flags: Mapping[str, object] = NOTHING) -> None:
        """Let an agent serve, unless one does."""
        if not self.agents or self.agent.ended():
            self.boot(flags=flags)
            wait_until(
                self.is_served, _START_SECONDS, "an agent that serves", seen=self.log, interval=0.01
            )

    def is_served(self) -> bool:
        """Whether the agent of the pod of now answers, after one attempt to register it."""
        return Kubelet(self.sockets.registration).register()

    def prepare(self, ref: ClaimRef) -> str:
        """The kubelet's call before a container starts: its error, empty for success. Raises
        NoAnswer."""
        return self.kubelet.prepare(ref)

    def unprepare(self, ref: ClaimRef) -> str:
        """The kubelet's call after the pod's end: its error, empty for success. Raises NoAnswer."""
        return self.kubelet.unprepare(ref)

    def successor(self, ref: ClaimRef, grant: Grant) -> ClaimRef:
        """A claim of that name made anew, with that allocation; nobody has called for it yet."""
        return self.claims.add(ref.name, grant)

    def succeed(self, ref: ClaimRef, successor: ClaimRef, *, refused: bool) -> None:
        """The pod of the new claim comes while the old one's ends: it waits for that one's end,
        and is `refused` until then. Raises AssertionError."""
        error = self.prepare(successor)
        if refused:
            assert str(ref) in error, f"{error!r} does not name the holder"
            assert self.unprepare(ref) == ""
            error = self.prepare(successor)
        assert error == "", error
        assert self.unprepare(ref) == ""
        self.held[successor] = self.held.pop(ref)

    def settle(self) -> None:
        """Return when nothing is under way that no call of the kubelet began."""

    def next_pod(self) -> None:
        """Agents that start from now on are of another pod, with sockets of their own."""
        self._pods += 1
        self.pod_uid = f"pod-{self._pods}"

    def retire(self) -> None:
        """Agents of earlier pods are told to stop."""
        for agent in self.agents[:-1]:
            agent.end(signal.SIGTERM)

    def down(self) -> None:
        """No agent runs any more."""
        for agent in self.agents:
            agent.end()

    def close(self) -> None:
        """Nothing is left of it."""
        self.down()
        self._end_tools()
        self.wipe_slices()

    def _end_tools(self) -> None:
        """What hangs outlives an agent that is killed; in a pod it ends with the container."""
        machine = str(self.machine.root).encode()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it has ended by itself
                if machine in path.read_bytes():
                    os.kill(int(path.parent.name), signal.SIGKILL)

    def add(self, grant: Grant, name: str = "") -> ClaimRef:
        """A claim of which the kubelet begins to know, under a name of its own or a given one."""
        self._serial += 1
        ref = self.claims.add(name or f"{self.name}-{self._serial}", grant)
        self.held[ref] = grant
        return ref

    def forget(self, ref: ClaimRef) -> None:
        """Nobody wants it any more; the kubelet may not have heard of that."""
        self.claims.delete(ref)

    def is_told(self, ref: ClaimRef) -> bool:
        """Whether the API server says what was prepared."""
        return bool(self.claims.told(ref))

    def serve_others(self) -> None:
        """Other pods run on the node, and the API server has been told of it."""
        self.up()
        for ref in [self.add(grant) for grant in bystanders()]:
            assert self.prepare(ref) == ""
        wait_until(lambda: all(map(self.is_told, self.held)), _START_SECONDS, "told", seen=self.log)

    def publishes(self) -> bool:
        """Whether the pool is whole, has every device once, and warns of the foreign card's."""
        specs = [each["spec"] for each in self.slices()]
        pools = {(spec["pool"]["generation"], spec["pool"]["resourceSliceCount"]) for spec in specs}
        devices = [device for spec in specs for device in spec.get("devices", ())]
        names = Counter(device["name"] for device in devices)
        foreign = [d for d in devices if d["attributes"]["card"]["string"] == str(FOREIGN)]
        return (
            len(pools) == 1
            and all(count == len(specs) for _, count in pools)
            and len(names) == names.total() == _ALL_DEVICES
            and all(any(t["key"] == TAINT_FOREIGN for t in d.get("taints", ())) for d in foreign)
        )

    def slices(self) -> Sequence[Object]:
        """What is published of the node."""
        return self.api.list(RESOURCE_SLICES, field_selector=own_slices(self.name)).items

    def wipe_slices(self) -> None:
        """As the kubelet does when it starts."""
        for each in self.slices():
            self.api.delete(RESOURCE_SLICES, each["metadata"]["name"])

    def files(self) -> dict[str, str]:
        """The CDI directory, by file name."""
        return {path.name: path.read_text() for path in self.cdi.glob("*")}

    def file_of(self, ref: ClaimRef) -> Path:
        """Where the claim's CDI file lies, if there is one."""
        return self.cdi / f"{DRIVER}-claim-{ref.uid}.json"

    def by_hand(self, card: PciAddress, *drs: str) -> None:
        """Somebody calls ``efsmi --drs``; not in a process of its own, by which the record tells
        it from the agent's calls."""
        index = str(self.machine.card(str(card)).efsmi_index)
        answer = self.machine.efsmi("-i", index, "--drs", *drs)
        assert answer.exit_code == 0, answer

    def make_foreign(self) -> None:
        """Somebody makes an instance of his own."""
        self.by_hand(FOREIGN, "on")
        self.by_hand(FOREIGN, "--create-instance", "0")

    def start_over(self) -> None:
        """A node on which no agent has ever run."""
        self.down()
        self.wipe_slices()
        for ref in self.held:
            self.forget(ref)
        self.held.clear()
        for folder in (self.cdi, self.state, self.machine.root):
            shutil.rmtree(folder, ignore_errors=True)
        self.machine = self._new_machine()

    def _new_machine(self) -> SimulatedMachine:
        shutil.rmtree(self.root / "kubelet", ignore_errors=True)
        for folder in ("plugins", "plugins_registry"):
            (self.root / "kubelet" / folder).mkdir(parents=True)
        cards = [{"bdf": str(card), "model": "S60"} for card in CARDS]
        foreign = {"bdf": str(FOREIGN), "model": "S60", "instances": [{"profile": "1g.6gb"}]}
        return SimulatedMachine.create(
            {"cards": [*cards, foreign]}, self.root / "machine", plain_device_files=True
        )
