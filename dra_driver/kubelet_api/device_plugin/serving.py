"""Serves several extended resources, and keeps them registered with the kubelet."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from contextlib import ExitStack
from typing import Final

import msgspec

from dra_driver.kubelet_api.device_plugin.folders import Folders, socket_names
from dra_driver.kubelet_api.device_plugin.handler import DeviceHandler
from dra_driver.kubelet_api.device_plugin.resource import ResourceServer
from dra_driver.kubelet_api.errors import SocketError
from dra_driver.kubelet_api.siblings import Siblings
from dra_driver.model.effects import Effects

logger = logging.getLogger(__name__)

_CHECK_EVERY: Final = 1.0


class Served(msgspec.Struct, frozen=True):
    """A resource; `kind` is part of its socket's name."""

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
        register_after: float | None,
        effects: Effects,
    ) -> None:
        """`pod_uid` is that of the agent's pod: two agents can serve side by side. The resources
        are registered after `announce`, or after `register_after` seconds if that is not None."""
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
        self._register_after = register_after
        self._announced = threading.Event()
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="plugin-watch", daemon=True)

    def start(self) -> None:
        """Serve; raises SocketError if a socket cannot be made, and then serves nothing."""
        with ExitStack() as begun:
            for server in self._servers:
                server.start()
                begun.callback(server.retract)
            begun.pop_all()
        self._watcher.start()

    def announce(self) -> None:
        """Register now: all devices can be listed. The kubelet takes the first list as complete."""
        self._announced.set()

    def stop(self, grace: float) -> None:
        """Withdraw, and let running calls end within `grace` seconds for each resource."""
        self._stopping.set()
        self._announced.set()
        for server in self._servers:
            server.stop(grace)

    def is_alive(self) -> bool:
        """Whether the thread is alive, from `start` on."""
        return self._watcher.is_alive()

    def notify(self) -> bool:
        """The devices have changed: send them. Returns whether a kubelet gets them."""
        for server in self._servers:
            server.notify()
        return any(server.is_listened_to for server in self._servers)

    @property
    def problem(self) -> str | None:
        """Why a resource is not registered; None if all are."""
        return next((server.problem for server in self._servers if server.problem), None)

    def _watch(self) -> None:
        self._announced.wait(self._register_after)
        while not self._stopping.is_set():
            for server in self._servers:
                try:
                    server.check_socket()
                except SocketError as error:
                    logger.warning("%s is not served: %s", server.resource, error)
            self._siblings.run_once()
            self._stopping.wait(_CHECK_EVERY)
