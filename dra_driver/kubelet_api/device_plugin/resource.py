"""One extended resource: its socket, and its registration with the kubelet."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api.broadcaster import STREAMS, Broadcaster
from dra_driver.kubelet_api.device_plugin.folders import API_VERSION, socket_identity
from dra_driver.kubelet_api.device_plugin.handler import DeviceHandler, ListedDevice
from dra_driver.kubelet_api.device_plugin.service import (
    OPTIONS,
    REGISTRATION,
    SERVICE,
    DevicePluginServicer,
)
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2 as api
from dra_driver.kubelet_api.rpc import connected, reason
from dra_driver.kubelet_api.server import UnixServer
from dra_driver.model.effects import NO_FAULTS, Effects, Point
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_PATIENCE: Final = 5.0
"""Seconds after which a registration counts as lost if the kubelet opens no stream."""
# Seconds after which the list is sent again: the end of a device's pause, or of a journal that
# cannot be read, triggers nothing.
_RESEND: Final = 60.0


@dataclass(eq=False)
class ResourceServer:
    """Serves `handler` on `socket` as `resource`, to the kubelet that listens on `kubelet`.

    `check_socket` must be called about once a second, by one thread.

    `threads` calls are handled at a time, even while all streams are open.
    """

    resource: str
    handler: InitVar[DeviceHandler]
    _: KW_ONLY
    socket: Path
    kubelet: Path
    threads: InitVar[int] = 64
    effects: Effects = NO_FAULTS
    clock: Clock = time.monotonic

    def __post_init__(self, handler: DeviceHandler, threads: int) -> None:
        self._broadcaster: Broadcaster[Sequence[ListedDevice]] = Broadcaster(
            handler.devices, what=f"the devices of {self.resource}"
        )
        servicer = DevicePluginServicer(handler, self._broadcaster, self.effects)
        self._server = UnixServer(
            self.socket, {SERVICE: servicer}, threads=threads + STREAMS, effects=self.effects
        )
        self._known: tuple[int, int] | None = None
        self._registered_at = float("-inf")
        self._opened_before = 0  # streams, when it was last registered
        self._sent_at = self.clock()
        self._socket_lock = threading.Lock()
        self._is_stopped = False
        self.problem: str | None = f"{self.resource} is not registered with the kubelet yet"

    @property
    def is_listened_to(self) -> bool:
        """Whether a kubelet has a stream open."""
        return self._broadcaster.listeners > 0

    def start(self) -> None:
        """Serve; raises SocketError. `check_socket` registers the resource."""
        self._server.start()

    def retract(self) -> None:
        """Undo `start`; it may be tried again."""
        self._server.stop(grace=0)

    def stop(self, grace: float) -> None:
        """End the streams, whereupon the kubelet drops the resource, and let running calls end
        within `grace` seconds."""
        self._broadcaster.stop()
        with self._socket_lock:
            self._is_stopped = True
        self._server.stop(grace)

    def notify(self) -> None:
        """The devices have changed: send the list now."""
        self._sent_at = self.clock()
        self._broadcaster.wake()

    def check_socket(self) -> None:
        """Make a missing socket again, register if the kubelet does not know the resource, and send
        the list at an interval. Does nothing after `stop`.

        Raises SocketError. `problem` says why the resource is not registered.
        """
        with self._socket_lock:
            # A socket that is made after `stop` would stay on the node.
            if self._is_stopped:
                return
            if not self.socket.exists():
                logger.info("%s is gone, as after a restart of the kubelet", self.socket)
                self._known = None
                self.problem = f"{self.socket} is gone, and not served yet"
                self._server.stop(grace=0)
                self._server.start()
        kubelet = socket_identity(self.kubelet)
        if kubelet is None:
            self._report(f"the kubelet does not serve {self.kubelet}")
        elif self._is_unknown_to(kubelet):
            self._register(kubelet)
        elif self.is_listened_to:
            self.problem = None
            if self.clock() - self._sent_at >= _RESEND:
                self.notify()

    def _is_unknown_to(self, kubelet: tuple[int, int]) -> bool:
        # A kubelet that loses the stream of an older agent drops what is registered by then
        # (1.36.3, pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go, `runClient`).
        unheard = not self.is_listened_to
        return self._known != kubelet or (
            unheard and self.clock() - self._registered_at >= _PATIENCE
        )

    def _register(self, kubelet: tuple[int, int]) -> None:
        # After the loss of a stream, as when an older agent ends, the next one takes a moment.
        opened = self._broadcaster.opened
        is_deaf = self._known == kubelet and opened == self._opened_before
        request = api.RegisterRequest(
            version=API_VERSION,
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
        if is_deaf and not self.is_listened_to:
            self._report(
                f"the kubelet registered {self.resource} and does not ask for its devices: see its "
                f"log for {self.socket.name}"
            )
        self._known = kubelet
        self._opened_before = opened
        self._registered_at = self.clock()

    def _report(self, problem: str) -> None:
        if self.problem != problem:
            logger.warning("%s", problem)
        self.problem = problem
