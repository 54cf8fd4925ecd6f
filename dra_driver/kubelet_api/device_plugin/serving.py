"""Serves extended resources, and keeps them registered with the kubelet."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar, dataclass
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api.broadcaster import STREAMS, Broadcaster
from dra_driver.kubelet_api.device_plugin.service import (
    OPTIONS,
    REGISTRATION,
    SERVICE,
    DeviceHandler,
    DevicePluginServicer,
)
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2 as api
from dra_driver.kubelet_api.rpc import connected, reason
from dra_driver.kubelet_api.server import UnixServer
from dra_driver.kubelet_api.siblings import RESOURCES, Siblings
from dra_driver.kubelet_api.sockets import Folders, SocketError, file_identity
from dra_driver.model.effects import NO_FAULTS, Effects, Point
from dra_driver.util.background import Background
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_THREADS: Final = 64
"""How many calls are handled at a time, even while all streams are open."""
_PATIENCE: Final = 5.0
"""Seconds after which a registration counts as lost if the kubelet opens no stream."""
# Seconds after which the list is sent again: the end of a device's pause, or of a journal that
# cannot be read, triggers nothing.
_RESEND: Final = 60.0
_CHECK_EVERY: Final = 1.0


@dataclass(eq=False)
class ResourceServer:
    """Serves `handler` on `socket` as `resource`, to the kubelet that listens on `kubelet`."""

    resource: str
    handler: InitVar[DeviceHandler]
    _: KW_ONLY
    socket: Path
    kubelet: Path
    effects: Effects = NO_FAULTS
    clock: Clock = time.monotonic

    def __post_init__(self, handler: DeviceHandler) -> None:
        self.broadcaster = Broadcaster(handler.devices, resend=_RESEND)
        servicer = DevicePluginServicer(handler, self.broadcaster, self.effects)
        self._server = UnixServer(
            self.socket, {SERVICE: servicer}, threads=_THREADS + STREAMS, effects=self.effects
        )
        self._known: tuple[int, int] | None = None
        self._registered_at = float("-inf")
        self._was_heard = False  # since it was registered
        self.problem: str | None = f"{self.resource} is not registered with the kubelet yet"

    def serve(self) -> None:
        """Make the socket if it is missing; raises SocketError. `check` registers the resource."""
        if not self._server.is_serving:
            if self._known is not None:
                logger.info("%s is gone, as after a restart of the kubelet", self.socket)
            self._known = None
            self._server.start()

    def stop(self, grace: float) -> None:
        """End the streams, whereupon the kubelet drops the resource, and let running calls end
        within `grace` seconds."""
        self.broadcaster.stop()
        self._server.stop(grace)

    def check(self) -> None:
        """Serve, and register if the kubelet does not know the resource. It must be called about
        once a second, by one thread. `problem` says why the resource is not registered."""
        try:
            self.serve()
        except SocketError as error:
            self._report(f"{self.resource} is not served: {error}")
            return
        kubelet = file_identity(self.kubelet)
        if kubelet is None:
            self._report(f"the kubelet does not serve {self.kubelet}")
        elif self._is_unknown_to(kubelet):
            self._register(kubelet)
        elif self.broadcaster.listeners:
            self._was_heard = True
            self.problem = None

    def _is_unknown_to(self, kubelet: tuple[int, int]) -> bool:
        # A kubelet that loses the stream of an older agent drops what is registered by then
        # (1.36.3, pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go, `runClient`).
        unheard = not self.broadcaster.listeners
        return self._known != kubelet or (
            unheard and self.clock() - self._registered_at >= _PATIENCE
        )

    def _register(self, kubelet: tuple[int, int]) -> None:
        request = api.RegisterRequest(
            version=api.DESCRIPTOR.package,
            endpoint=self.socket.name,
            resource_name=self.resource,
            options=OPTIONS,
        )
        try:
            with (
                self.effects(Point.PLUGIN_REGISTER),
                connected(self.kubelet, REGISTRATION) as kubelet_stub,
            ):
                kubelet_stub.Register(request, timeout=_PATIENCE)
        except grpc.RpcError as error:
            self._report(f"the kubelet did not take {self.resource}: {reason(error)}")
            return
        logger.info("the kubelet registered %s", self.resource)
        self.problem = None
        # After the loss of a stream, as when an older agent ends, the next one takes a moment.
        if self._known == kubelet and not self._was_heard:
            self._report(
                f"the kubelet registered {self.resource} and does not ask for its devices: see its "
                f"log for {self.socket.name}"
            )
        self._known = kubelet
        self._was_heard = False
        self._registered_at = self.clock()

    def _report(self, problem: str) -> None:
        if self.problem != problem:
            logger.warning("%s", problem)
        self.problem = problem


class ResourceServers(Background):
    """Serves the resources of `handlers` from `serve` until `stop`. Constructing it has no
    effect."""

    def __init__(
        self,
        handlers: Mapping[str, DeviceHandler],
        *,
        folders: Folders,
        register_after: float | None,
        effects: Effects,
    ) -> None:
        """The resources are registered after `announce`, or after `register_after` seconds if that
        is not None."""
        super().__init__("plugin-watch", interrupt=self.announce)
        self._servers = [
            ResourceServer(
                resource,
                handler,
                socket=folders.socket(resource),
                kubelet=folders.kubelet,
                effects=effects,
            )
            for resource, handler in handlers.items()
        ]
        self._siblings = Siblings({each.socket: RESOURCES for each in self._servers}, effects)
        self._register_after = register_after
        self._announced = threading.Event()

    def serve(self) -> None:
        """Serve; raises SocketError if a socket cannot be made, and may be tried again. Does
        nothing when it serves."""
        if not self.is_started:
            for server in self._servers:
                server.serve()
            self.start()

    def announce(self) -> None:
        """Register now: all devices can be listed. The kubelet takes the first list as complete."""
        self._announced.set()

    def stop(self, timeout: float) -> None:
        """Let running calls end within `timeout` seconds for each resource."""
        super().stop(timeout)
        for server in self._servers:
            server.stop(timeout)

    def notify(self) -> bool:
        """The devices have changed: send them. Returns whether a kubelet gets them."""
        for server in self._servers:
            server.broadcaster.wake()
        return any(server.broadcaster.listeners for server in self._servers)

    def problem(self) -> str | None:
        """Why a resource is not registered; None if all are."""
        return next((server.problem for server in self._servers if server.problem), None)

    def run(self) -> None:
        self._announced.wait(self._register_after)
        while not self._stopped.is_set():
            for server in self._servers:
                if not self._stopped.is_set():  # a socket that is made now would stay
                    server.check()
            self._siblings.run_once()
            self._wait(_CHECK_EVERY)
