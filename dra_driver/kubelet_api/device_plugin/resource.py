"""One extended resource: its socket, and the kubelet that must know of it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api.broadcaster import STREAMS, Broadcaster
from dra_driver.kubelet_api.device_plugin.folders import API_VERSION, socket_identity
from dra_driver.kubelet_api.device_plugin.handler import DeviceHandler, ListedDevice
from dra_driver.kubelet_api.device_plugin.service import OPTIONS, Servicer
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2 as api
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2_grpc as rpc
from dra_driver.kubelet_api.server import UnixServer
from dra_driver.model.effects import Effects, Point

logger = logging.getLogger(__name__)

_PATIENCE: Final = 5.0
"""Seconds after which a registration is taken for lost where the kubelet does not listen."""
# Seconds after which the list is sent again: what closes a device for a while, or a journal that
# cannot be read, ends without a word.
_TELL_AGAIN: Final = 60.0
# A connection of its own each time: one that is kept leads to the kubelet of before.
_OPTIONS: Final = (("grpc.use_local_subchannel_pool", 1),)


class ResourceServer:
    """Serves `handler` on `socket` as `resource`, to the kubelet that listens on `kubelet`.

    `look` must be called about once a second, by one thread.
    """

    def __init__(
        self,
        resource: str,
        handler: DeviceHandler,
        *,
        socket: Path,
        kubelet: Path,
        threads: int = 64,
        effects: Effects | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`threads` is how many calls are handled at a time even while all streams are open."""
        effects = effects or Effects()
        self.resource = resource
        self._socket = socket
        self._kubelet = kubelet
        self._effects = effects
        self._clock = clock
        self._feed: Broadcaster[Sequence[ListedDevice]] = Broadcaster(
            handler.devices, what=f"the devices of {resource}"
        )
        servicer = Servicer(handler, self._feed, effects)

        def serve(server: grpc.Server) -> None:
            rpc.add_DevicePluginServicer_to_server(servicer, server)

        self._server = UnixServer(socket, serve, threads=threads + STREAMS, effects=effects)
        self._known: tuple[int, int] | None = None
        self._registered_at = float("-inf")
        self._told_at = clock()
        self._socket_lock = threading.Lock()
        self._is_stopped = False
        self.problem: str | None = f"{resource} is not registered with the kubelet yet"

    @property
    def is_listened_to(self) -> bool:
        """Whether a kubelet hears of the devices."""
        return self._feed.listeners > 0

    def start(self) -> None:
        """Serve; raises SocketError. The kubelet is told by `look`."""
        self._server.start()

    def retract(self) -> None:
        """Undo `start`; it may be tried again."""
        self._server.stop(grace=0)

    def stop(self, grace: float) -> None:
        """End the streams, whereupon the kubelet drops the resource, and let running calls end
        within `grace` seconds."""
        self._feed.stop()
        with self._socket_lock:
            self._is_stopped = True
        self._server.stop(grace)

    def notify(self) -> None:
        """The devices have changed: send the list now."""
        self._told_at = self._clock()
        self._feed.wake()

    def check_socket(self) -> None:
        """Serve anew where the socket is gone, register where the kubelet does not know of us, and
        send it the list now and then. After `stop` it does nothing.

        Raises SocketError. Why the kubelet does not know of us is in `problem`.
        """
        with self._socket_lock:
            # `stop` removes the socket: one that is made anew after that would stay on the node.
            if self._is_stopped:
                return
            if not self._socket.exists():
                logger.info(
                    "%s is gone, as after a start of the kubelet: serving anew", self._socket
                )
                self._known = None
                self.problem = f"{self._socket} is gone, and not served yet"
                self._server.stop(grace=0)
                self._server.start()
        kubelet = socket_identity(self._kubelet)
        if kubelet is None:
            self._tell(f"the kubelet does not serve {self._kubelet}")
        elif self._is_unknown_to(kubelet):
            self._register(kubelet)
        elif self.is_listened_to:
            self.problem = None
            if self._clock() - self._told_at >= _TELL_AGAIN:
                self.notify()

    def _is_unknown_to(self, kubelet: tuple[int, int]) -> bool:
        # A kubelet that loses the stream of an older agent drops what is registered by then
        # (1.36.3, pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go, `runClient`).
        unheard = not self.is_listened_to
        return self._known != kubelet or (
            unheard and self._clock() - self._registered_at >= _PATIENCE
        )

    def _register(self, kubelet: tuple[int, int]) -> None:
        request = api.RegisterRequest(
            version=API_VERSION,
            endpoint=self._socket.name,
            resource_name=self.resource,
            options=OPTIONS,
        )
        try:
            with (
                self._effects(Point.PLUGIN_REGISTER),
                grpc.insecure_channel(f"unix:{self._kubelet}", options=_OPTIONS) as channel,
            ):
                rpc.RegistrationStub(channel).Register(request, timeout=_PATIENCE)
        except grpc.RpcError as error:
            why = f"{error.code().name}, {error.details()}"
            self._tell(f"the kubelet did not take {self.resource}: {why}")
            return
        logger.info("the kubelet registered %s", self.resource)
        self.problem = None
        if self._known == kubelet and not self.is_listened_to:
            self._tell(
                f"the kubelet registered {self.resource} and does not ask for its devices: see its "
                f"log for {self._socket.name}"
            )
        self._known = kubelet
        self._registered_at = self._clock()

    def _tell(self, problem: str) -> None:
        if self.problem != problem:
            logger.warning("%s", problem)
        self.problem = problem
