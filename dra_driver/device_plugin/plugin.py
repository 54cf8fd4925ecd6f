"""The whole of what the kubelet sees of the device plugin: three resources, and their upkeep."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from dra_driver.device_plugin.allocator import Allocator, InjectionMethod
from dra_driver.device_plugin.garbage_collector import DeviceSets, GarbageCollector
from dra_driver.device_plugin.handler import ModeHandler
from dra_driver.device_plugin.hints import hints, is_requested
from dra_driver.device_plugin.inventory import NodeView
from dra_driver.device_plugin.node_pods import NodePods
from dra_driver.device_plugin.preference import Hints
from dra_driver.kubelet_api.device_plugin.folders import Folders
from dra_driver.kubelet_api.device_plugin.handler import DeviceHandler
from dra_driver.kubelet_api.device_plugin.record import KubeletRecord, Recorded, read_checkpoint
from dra_driver.kubelet_api.device_plugin.serving import ResourceServers, Served
from dra_driver.kubelet_api.errors import KubeletError
from dra_driver.model.effects import Effects
from dra_driver.model.mode import Mode
from dra_driver.model.names import pool_name
from dra_driver.model.plugin_device import RESOURCES
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.ports import Hardware

logger = logging.getLogger(__name__)

Timed = Callable[[str, DeviceHandler], DeviceHandler]


class DevicePlugin:
    """Serves the cards of `view` until `stop`. Constructing it has no effect.

    `injection_method` says how containers get their devices, as this node's kubelet takes them;
    `changed` is called when something was given out or released.
    """

    def __init__(
        self,
        *,
        view: Callable[[], NodeView],
        claim_manager: PreparedClaimManager,
        hardware: Hardware,
        injection_method: Callable[[], InjectionMethod],
        changed: Callable[[], None],
        node_name: str,
        kubelet_root: Path,
        pod_uid: str = "",
        release_interval: float = 10.0,
        patience: float = 0.0,
        pods: NodePods | None = None,
        pods_lag: Callable[[], float] = lambda: 0.0,
        timed: Timed = lambda _resource, handler: handler,
        effects: Effects | None = None,
    ) -> None:
        """`pod_uid` is the agent's own pod's: two agents can serve side by side. `patience` is how
        many seconds `announce` may take to come. `pods` are the node's, and `pods_lag` gives how
        many seconds later than the kubelet their watch may be. `timed` gives the handler of a
        resource, its calls measured."""
        effects = effects or Effects()
        folders = Folders.of(kubelet_root)
        self._changed = changed
        self._pods = pods or NodePods()
        self._pods_lag = pods_lag
        self._checkpoint = folders.checkpoint
        self._record = KubeletRecord(folders.pod_resources, folders.checkpoint, tell=self.notify)
        allocator = Allocator(
            view=view,
            claim_manager=claim_manager,
            hardware=hardware,
            recorded=lambda: device_sets(self._record.checkpoint()),
            pool=pool_name(node_name),
            injection_method=injection_method,
        )
        self._servers = ResourceServers(
            [
                Served(
                    mode.value,
                    RESOURCES[mode],
                    timed(
                        RESOURCES[mode],
                        ModeHandler(
                            mode,
                            view=view,
                            allocator=allocator,
                            changed=self._on_change,
                            hints=self._hints,
                        ),
                    ),
                )
                for mode in Mode
            ],
            folders=folders,
            pod_uid=pod_uid,
            patience=patience,
            effects=effects,
        )
        self._releaser = GarbageCollector(
            ledger=lambda: view().ledger,
            claim_manager=claim_manager,
            recorded=self._held,
            changed=self._on_change,
            interval=release_interval,
        )

    def start(self) -> None:
        """Serve; raises SocketError where a socket cannot be made, and nothing is served then."""
        self._servers.start()
        self._releaser.start()

    def announce(self) -> None:
        """All that is there can be listed: the kubelet may hear of us. It takes the first list for
        the whole, and has none of ours until then."""
        self._servers.announce()

    def stop(self, grace: float) -> None:
        """Withdraw, and let running calls end within `grace` seconds for each resource. What
        containers have stays: they run on."""
        self._releaser.stop(grace)
        self._servers.stop(grace)

    def is_alive(self) -> bool:
        """Whether the threads beside the servers run, from `start` on."""
        return self._servers.is_alive() and self._releaser.is_alive()

    def notify(self) -> bool:
        """The cards have changed, or what is held of them; says whether a kubelet hears of it."""
        return self._servers.notify()

    def problem(self) -> str | None:
        """Why no devices can be given out, or none can be released; None when all is well."""
        return self._servers.problem or self._releaser.problem

    def _hints(self, mode: Mode, size: int) -> Hints:
        try:
            recorded = read_checkpoint(self._checkpoint)
        except KubeletError as error:
            logger.debug("it is not known which pods have their devices: %s", error)
            recorded = ()
        # Kubelet and agent have a watch each. On a busy node the kubelet is often told of a pod
        # first, and its cards are known by the pod alone.
        if not self._pods.wait_for(
            lambda pods: is_requested(pods, recorded, mode, size), self._pods_lag()
        ):
            logger.info(
                "no pod of this node is known to request %d devices of %s", size, RESOURCES[mode]
            )
        return hints(self._pods.waiting(), recorded, mode, size)

    def _held(self, devices: DeviceSets) -> DeviceSets:
        found = [each for each in self._record.read() if each.devices in devices]
        return device_sets(self._pods.left(found))

    def _on_change(self) -> None:
        self.notify()
        self._changed()


def device_sets(recorded: Iterable[Recorded]) -> DeviceSets:
    """What of the kubelet's record is ours."""
    ours = set(RESOURCES.values())
    return {each.devices for each in recorded if each.resource in ours}
