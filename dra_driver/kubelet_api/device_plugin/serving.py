"""Extended resources that an agent serves side by side, and the kubelet that must know of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from dra_driver.kubelet_api.device_plugin.folders import Folders, socket_names
from dra_driver.kubelet_api.device_plugin.handler import DeviceHandler
from dra_driver.kubelet_api.device_plugin.resource import ResourceServer
from dra_driver.kubelet_api.errors import SocketError
from dra_driver.kubelet_api.siblings import Siblings
from dra_driver.model.effects import Effects

logger = logging.getLogger(__name__)

_LOOK_EVERY: Final = 1.0


@dataclass(frozen=True, slots=True)
class Served:
    """A resource. `kind` is what its socket is named by."""

    kind: str
    resource: str
    handler: DeviceHandler


class ResourceServers:
    """Serves the resources from `start` until `stop`. Constructing it has no effect."""

    def __init__(
        self,
        resources: Collection[Served],
        *,
        folders: Folders,
        pod_uid: str,
        patience: float | None,
        effects: Effects,
    ) -> None:
        """`pod_uid` is the agent's own pod's: two agents can serve side by side. `patience` is how
        many seconds `announce` may take to come; None is as long as it takes."""
        sockets = {each.kind: folders.socket(each.kind, pod_uid) for each in resources}
        self._servers = [
            ResourceServer(
                each.resource,
                each.handler,
                socket=sockets[each.kind],
                kubelet=folders.kubelet,
                effects=effects,
            )
            for each in resources
        ]
        self._siblings = Siblings(
            {socket: socket_names(kind) for kind, socket in sockets.items()}, effects
        )
        self._patience = patience
        self._announced = threading.Event()
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="plugin-watch", daemon=True)

    def start(self) -> None:
        """Serve; raises SocketError where a socket cannot be made, and nothing is served then."""
        with ExitStack() as begun:
            for server in self._servers:
                server.start()
                begun.callback(server.retract)
            begun.pop_all()
        self._watcher.start()

    def announce(self) -> None:
        """All that is there can be listed: the kubelet may hear of us. It takes the first list for
        the whole, and has none of ours until then."""
        self._announced.set()

    def stop(self, grace: float) -> None:
        """Withdraw, and let running calls end within `grace` seconds for each resource."""
        self._stopping.set()
        self._announced.set()
        for server in self._servers:
            server.stop(grace)

    def is_alive(self) -> bool:
        """Whether the thread beside the servers runs, from `start` on."""
        return self._watcher.is_alive()

    def notify(self) -> bool:
        """The devices have changed; says whether a kubelet hears of it."""
        for server in self._servers:
            server.notify()
        return any(server.is_listened_to for server in self._servers)

    @property
    def problem(self) -> str | None:
        """Why the kubelet does not know of a resource; None when it knows of all."""
        return next((server.problem for server in self._servers if server.problem), None)

    def _watch(self) -> None:
        self._announced.wait(self._patience)
        while not self._stopping.is_set():
            for server in self._servers:
                try:
                    server.check_socket()
                except SocketError as error:
                    logger.warning("%s is not served: %s", server.resource, error)
            self._siblings.run_once()
            self._stopping.wait(_LOOK_EVERY)
