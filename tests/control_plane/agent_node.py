"""An agent as a process of its own: a Node object, a simulated machine, and a played kubelet."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.simulator.machine import SimulatedMachine
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.driver import Driver
from tests.control_plane.program_process import ProgramProcess
from tests.unit.kubelet_api import fake_kubelet


@dataclass(frozen=True)
class Place:
    """A Node object, a simulated machine for it, and the folders of a kubelet that is played."""

    node: str
    root: Path
    machine: SimulatedMachine
    kubeconfig: Path

    @classmethod
    def make(cls, cluster: Cluster, driver: Driver, root: Path, cards: Iterable[str]) -> Place:
        """A new Node with S60 cards of these addresses; `root` has room for sockets."""
        name = f"served-{secrets.token_hex(3)}"
        cluster.add_node_object(name)
        for folder in ("plugins", "plugins_registry"):
            (root / "kubelet" / folder).mkdir(parents=True)
        described = [{"bdf": bdf, "model": "S60"} for bdf in cards]
        machine = SimulatedMachine.create(
            {"cards": described}, root / "machine", plain_device_files=True
        )
        return cls(name, root, machine, driver.kubeconfig("agent", root / "kubeconfig", node=name))

    @property
    def sockets(self) -> Sockets:
        return Sockets.of(self.root / "kubelet")

    @property
    def settings(self) -> dict[str, object]:
        return {
            "node_name": self.node,
            "host_root": self.machine.root,
            "efsmi_path": str(self.machine.efsmi_path),
            "mode": "dra",  # no kubelet of the node says its version
            "kubelet_root": self.root / "kubelet",
            "cdi_dir": self.root / "cdi",
        }

    def process(self, **settings: object) -> ProgramProcess:
        """The agent, begun, with `settings` besides those above."""
        values = self.settings | settings
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in values.items()]
        return ProgramProcess(
            "dra_driver.agent.main",
            self.root / "agent.log",
            f"--kubeconfig={self.kubeconfig}",
            "--probe-port=0",
            *flags,
        )


def register(place: Place, process: ProgramProcess) -> None:
    """Play the kubelet, and wait until the agent is ready."""
    registration = place.sockets.registration
    wait_until(registration.exists, PATIENCE, "the registration socket", seen=process.log)
    fake_kubelet.notify(registration, registered=True)
    wait_until(
        lambda: process.probe("/readyz") == (200, "ok"),
        PATIENCE,
        "the agent ready",
        seen=lambda: process.probe("/readyz")[1],
    )
