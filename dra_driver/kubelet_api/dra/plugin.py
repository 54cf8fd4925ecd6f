"""The whole of what the kubelet sees: the DRA service and the registration beside it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api.broadcaster import STREAMS
from dra_driver.kubelet_api.dra import health_v1, health_v1alpha1
from dra_driver.kubelet_api.dra import service as service_v1
from dra_driver.kubelet_api.dra.claim_service import CallObserver, ClaimService
from dra_driver.kubelet_api.dra.handler import ClaimHandler
from dra_driver.kubelet_api.dra.health import HealthSource
from dra_driver.kubelet_api.dra.health_broadcaster import HealthBroadcaster
from dra_driver.kubelet_api.dra.registration import Registration
from dra_driver.kubelet_api.dra.self_check import SelfCheck
from dra_driver.kubelet_api.errors import SocketError
from dra_driver.kubelet_api.generated import (
    dra_health_v1_pb2_grpc,
    dra_health_v1alpha1_pb2_grpc,
    dra_v1_pb2_grpc,
    pluginregistration_v1_pb2_grpc,
)
from dra_driver.kubelet_api.server import UnixServer
from dra_driver.kubelet_api.siblings import Siblings, dra_siblings
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.effects import Effects

logger = logging.getLogger(__name__)

# Of each kind the kubelet takes the newest that it knows. Up to 1.36 it asks for health whatever
# stands here, from 1.37 on only where it stands here.
SERVICES: Final = (
    service_v1.SERVICE,
    health_v1.SERVICE,
    health_v1alpha1.SERVICE,
)


class KubeletPlugin:
    """Serves `handler`, and what `health` says of the devices, to the kubelet; `observer`
    is told of each call for claims.

    `threads` is how many calls are handled at a time even while all streams are open; `silence`
    is after how many seconds without the kubelet a person is told; other agents are looked for
    every `look_every` seconds. Raises nothing until `start`.
    """

    def __init__(
        self,
        handler: ClaimHandler,
        health: HealthSource,
        sockets: Sockets,
        observer: CallObserver,
        *,
        threads: int = 64,
        silence: float = 30.0,
        look_every: float = 1.0,
        effects: Effects | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        effects = effects or Effects()
        claims = ClaimService(handler, observer, effects)
        feed = HealthBroadcaster(health)
        self._clock = clock
        self._look_every = look_every
        self._feed = feed
        self._sockets = sockets
        self._siblings = Siblings(dra_siblings(sockets), effects)
        self._self_check = SelfCheck(sockets)
        self._registration = Registration(
            socket=sockets.registration,
            endpoint=sockets.service,
            services=SERVICES,
            silence=silence,
            clock=clock,
        )

        def serve(server: grpc.Server) -> None:
            dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(service_v1.Servicer(claims), server)
            dra_health_v1_pb2_grpc.add_DRAResourceHealthServicer_to_server(
                health_v1.Servicer(feed), server
            )
            dra_health_v1alpha1_pb2_grpc.add_DRAResourceHealthServicer_to_server(
                health_v1alpha1.Servicer(feed), server
            )

        def serve_registration(server: grpc.Server) -> None:
            pluginregistration_v1_pb2_grpc.add_RegistrationServicer_to_server(
                self._registration, server
            )

        self._service = UnixServer(
            sockets.service, serve, threads=threads + STREAMS, effects=effects
        )
        self._registrar = UnixServer(
            sockets.registration, serve_registration, threads=2, effects=effects
        )
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="socket-watch", daemon=True)

    def start(self) -> None:
        """Serve, then announce it; raises SocketError when a socket cannot be made, and
        nothing is served then.

        The service comes first: the kubelet may call it as soon as it knows of it. Its folder
        is made here; the kubelet's own `plugins_registry` must exist.
        """
        _make_folder(self._sockets.service.parent)
        self._service.start()
        self._siblings.run_once()  # who is here is missed when it leaves, however soon
        try:
            self._registrar.start()
        except SocketError:
            self._service.stop(grace=0)
            raise
        self._registration.wait_from_now()
        self._self_check.start()
        self._watcher.start()

    def stop(self, grace: float) -> None:
        """Withdraw the registration, then let running calls end, in all within `grace` seconds.

        The kubelet notices that the registration socket is gone, so it sends no new call here.
        Streams end before the socket goes: who sees that it is gone knows that they have.
        """
        end = self._clock() + grace
        self._stopping.set()
        self._self_check.stop(timeout=0.0)  # a call that is out ends with its socket
        self._registrar.stop(grace)
        self._feed.stop()
        self._service.stop(max(0.0, end - self._clock()))

    def is_alive(self) -> bool:
        """Whether the threads beside the servers run, from `start` on."""
        return self._watcher.is_alive() and self._self_check.is_alive()

    def notify_health(self) -> None:
        """The health of a device has changed: send the list to the kubelet now."""
        self._feed.wake()

    def problem(self) -> str | None:
        """Why no claims can come in, in words for the readiness probe; None when they can."""
        return self._registration.problem()

    def fault(self) -> str | None:
        """Why calls do not come through the sockets to here, in words for the liveness probe; None
        when the last one did, or there was none yet."""
        return self._self_check.problem

    def _watch(self) -> None:
        someone_left = False
        while not self._stopping.wait(self._look_every):
            self._registration.tell_silence()
            left_before, someone_left = someone_left, self._siblings.run_once()
            # With the other's stream the kubelet forgets what all of us told it (1.36.3,
            # `HandleWatchResourcesStream`), perhaps a little later than the other has left.
            if left_before or someone_left:
                logger.info("another agent has left: telling the health of the devices again")
                self._feed.wake()


def _make_folder(folder: Path) -> None:
    # Not its parents: below a wrong root directory they would hide the mistake.
    try:
        folder.mkdir(mode=0o750, exist_ok=True)
    except OSError as error:
        raise SocketError(
            f"the folder {folder} cannot be made: {error.strerror}",
            remedy="set the chart's kubeletRootDir to the kubelet's --root-dir",
        ) from error
