"""A node whose device plugin works between a kubelet's device manager and the simulator's cards."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dra_driver.device_plugin.node_pods import NodePods
from dra_driver.device_plugin.plugin import DevicePlugin
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from tests.unit.device_plugin.plugin_world import PluginWorld
from tests.unit.kubelet_api.device_plugin.device_manager import DeviceManager
from tests.unit.node.drs_world import tool
from tests.unit.node.world import CARDS, NODE, Agent

ONE, TWO = map(str, CARDS[:2])
WHOLE, SHARED, DRS = (RESOURCES[mode] for mode in Mode)


class Late(NodePods):
    """Whose watch tells of `coming` while that is waited for, and not before."""

    def __init__(self, *coming: dict[str, Any]) -> None:
        super().__init__(lag=lambda: 60.0)
        self.coming = coming

    def wait_for(self, is_there: Callable[[Collection[Any]], bool]) -> bool:
        with ThreadPoolExecutor(1) as watch:
            watch.submit(self.on_replace, self.coming)
            return super().wait_for(is_there)


class Node:
    """A kubelet, and agents one after the other; `told` has each change."""

    def __init__(
        self,
        root: Path,
        *,
        cards: int = 2,
        release_interval: float = 0.05,
        pods: NodePods | None = None,
    ) -> None:
        self.pods = pods
        self.release_interval = release_interval
        self.told: list[bool] = []
        self.world = PluginWorld(root / "node", tool=tool(cards))
        self.kubelet = DeviceManager(root, keeps_last=pods is not None)
        self.kubelet.start()
        self.agent: Agent
        self.plugin: DevicePlugin
        self.start()
        self.world.learn(self.agent)
        self.tell()
        self.becomes(cards, cards * 6, cards * 6)

    def start(self) -> None:
        """An agent that serves; the kubelet knows of its three resources."""
        known = len(self.kubelet.registered)
        self.agent = self.world.start()
        self.plugin = DevicePlugin(
            view=lambda: self.world.view(self.agent),
            claim_manager=self.agent.preparer.claim_manager,
            hardware=self.world.cards,
            takes_cdi_names=lambda: self.world.takes_cdi_names,
            on_change=self.tell,
            node_name=NODE,
            folders=self.kubelet.folders,
            release_interval=self.release_interval,
            pods=self.pods,
        )
        self.plugin.serve()
        self.kubelet.until(lambda: len(self.kubelet.registered) >= known + 3, "not registered")
        self.kubelet.until(self.is_known, "no lists came")

    def tell(self) -> None:
        self.told.append(True)  # by many threads
        self.plugin.notify()

    def is_known(self) -> bool:
        return all(
            resource in self.kubelet.endpoints
            and self.kubelet.endpoints[resource].lists
            and not self.kubelet.endpoints[resource].lost
            for resource in RESOURCES.values()
        )

    def stop(self) -> None:
        self.plugin.stop(0)

    def counts(self) -> tuple[int, int, int]:
        """Whole cards, slices and units of DRS size that the kubelet has."""
        return (
            len(self.kubelet.ids(WHOLE)),
            len(self.kubelet.ids(SHARED)),
            len(self.kubelet.ids(DRS)),
        )

    def becomes(self, whole: int, shared: int, drs: int) -> None:
        wanted = (whole, shared, drs)
        self.kubelet.until(lambda: self.counts() == wanted, f"{wanted}, but {self.counts()}")

    def profiles(self, card: str = ONE) -> list[str]:
        return sorted(one.profile for one in self.world.tool.instances(card))
