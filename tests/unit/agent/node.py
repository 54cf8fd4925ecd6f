"""A node for a whole agent: a simulated machine, the kubelet's folders, and claims in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from dra_driver.agent.agent import Agent
from dra_driver.agent.lifecycle.serving_mode import ModeSetting
from dra_driver.agent.settings import AgentSettings
from dra_driver.kube.api import Api
from dra_driver.kube.errors import NotFound, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.kubelet_api.generated import dra_v1_pb2
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.effects import Effects
from dra_driver.simulator.machine import SimulatedMachine
from dra_driver.util.hooks import OnChange
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.node.world import NODE, claim, result

CARDS = ("0000:0d:00.0", "0000:0e:00.0")


class Claims:
    """An API server that gives claims out, and does nothing else, or not even that. It has no
    pods."""

    def __init__(self) -> None:
        self.claims: dict[str, Object] = {}
        self.away = False

    def add(self, name: str, card: int) -> ClaimRef:
        """A claim allocated to a whole card, by its place among `CARDS`."""
        return self.put(claim(name, result(card)))

    def put(self, made: Object) -> ClaimRef:
        ref = ClaimRef.of(made)
        self.claims[ref.name] = made
        return ref

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        if resource is PODS and not self.away:
            raise NotFound(f"there is no pod {name}", status=404)
        if self.away or resource is not RESOURCE_CLAIMS:
            raise Unavailable(f"the API server did not answer GET {name}")
        return self.claims[name]

    def __getattr__(self, verb: str) -> Any:
        def refuse(*args: object, **kwargs: object) -> None:
            raise Unavailable(f"the API server did not answer {verb}")

        return refuse


class Node:
    """Starts agents on the same machine, one after the other."""

    def __init__(self, root: Path) -> None:
        self.root = root
        described = [{"bdf": bdf, "model": "S60"} for bdf in CARDS]
        self.machine = SimulatedMachine.create(
            {"cards": described}, root / "machine", plain_device_files=True
        )
        self.kubelet = root / "kubelet"
        for folder in ("plugins", "plugins_registry"):
            (self.kubelet / folder).mkdir(parents=True)
        self.mode: ModeSetting = "dra"
        self.cdi = root / "cdi"
        self.state = root / "state"
        self.api = Claims()
        self.sockets = Sockets.of(self.kubelet)
        self.agents: list[Agent] = []

    def agent(
        self,
        effects: Effects | None = None,
        *,
        on_restart: OnChange = lambda: None,
        **more: Any,
    ) -> Agent:
        """With `more` settings."""
        settings = AgentSettings(
            node_name=NODE,
            mode=self.mode,
            host_root=self.machine.root,
            efsmi_path=str(self.machine.efsmi_path),
            kubelet_root=self.kubelet,
            cdi_dir=self.cdi,
            state_dir=self.state,
            **more,
        )
        agent = Agent(
            settings, cast("Api", self.api), effects=effects or Effects(), on_restart=on_restart
        )
        self.agents.append(agent)
        return agent

    def started(self, effects: Effects | None = None, **more: Any) -> Agent:
        """An agent that has done all steps of its start."""
        agent = self.agent(effects, **more)
        agent.start()
        assert agent._startup.done.wait(60), agent.ready()
        return agent

    def stop(self) -> None:
        """The last agent ends."""
        self.agents.pop().stop()

    def prepare(
        self, ref: ClaimRef, patience: float = fake_kubelet.PATIENCE
    ) -> dra_v1_pb2.NodePrepareResourceResponse:
        """What the kubelet is answered for the claim."""
        answer = fake_kubelet.prepare_v1(self.sockets.service, ref, patience=patience)
        [found] = answer.claims.values()
        return found

    def unprepare(self, ref: ClaimRef) -> dra_v1_pb2.NodeUnprepareResourceResponse:
        """What the kubelet is answered for the claim."""
        [found] = fake_kubelet.unprepare_v1(self.sockets.service, ref).claims.values()
        return found

    def files(self) -> dict[str, str]:
        """The CDI directory, by file name."""
        return {path.name: path.read_text() for path in self.cdi.iterdir()}
