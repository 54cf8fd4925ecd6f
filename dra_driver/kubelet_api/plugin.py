"""The whole of what the kubelet sees: the DRA service and the registration beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api import service_v1, service_v1beta1
from dra_driver.kubelet_api.calls import Calls
from dra_driver.kubelet_api.errors import SocketError
from dra_driver.kubelet_api.generated import (
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2_grpc,
    pluginregistration_v1_pb2_grpc,
)
from dra_driver.kubelet_api.handler import ClaimHandler
from dra_driver.kubelet_api.registration import Registration
from dra_driver.kubelet_api.server import UnixServer
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.effects import Effects

# The kubelet prefers the first that it knows.
SERVICES: Final = (service_v1.SERVICE, service_v1beta1.SERVICE)
_LOOK_EVERY: Final = 1.0


class KubeletPlugin:
    """Serves `handler` to the kubelet.

    `threads` bounds the calls handled at a time; `silence` is after how many seconds without
    the kubelet a person is told. Raises nothing until `start`.
    """

    def __init__(
        self,
        handler: ClaimHandler,
        sockets: Sockets,
        *,
        threads: int = 16,
        silence: float = 30.0,
        effects: Effects | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        effects = effects or Effects()
        calls = Calls(handler, effects)
        self._sockets = sockets
        self._registration = Registration(
            socket=sockets.registration,
            endpoint=sockets.service,
            services=SERVICES,
            silence=silence,
            clock=clock,
        )

        def serve_claims(server: grpc.Server) -> None:
            dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(service_v1.Servicer(calls), server)
            dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server(
                service_v1beta1.Servicer(calls), server
            )

        def serve_registration(server: grpc.Server) -> None:
            pluginregistration_v1_pb2_grpc.add_RegistrationServicer_to_server(
                self._registration, server
            )

        self._service = UnixServer(sockets.service, serve_claims, threads=threads, effects=effects)
        self._registrar = UnixServer(
            sockets.registration, serve_registration, threads=2, effects=effects
        )
        self._stopping = threading.Event()

    def start(self) -> None:
        """Serve claims, then announce it; raises SocketError when a socket cannot be made, and
        nothing is served then.

        The service comes first: the kubelet may call it as soon as it knows of it. Its folder
        is made here; the kubelet's own `plugins_registry` must exist.
        """
        _make_folder(self._sockets.service.parent)
        self._service.start()
        try:
            self._registrar.start()
        except SocketError:
            self._service.stop(grace=0)
            raise
        self._registration.wait_from_now()
        threading.Thread(target=self._watch, name="registration-watch", daemon=True).start()

    def stop(self, grace: float) -> None:
        """Withdraw the registration, then let running calls end within `grace` seconds.

        The kubelet notices that the registration socket is gone, so it sends no new call here.
        """
        self._stopping.set()
        self._registrar.stop(grace)
        self._service.stop(grace)

    def problem(self) -> str | None:
        """Why no claims can come in, in words for the readiness probe; None when they can."""
        return self._registration.problem()

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK_EVERY):
            self._registration.tell_silence()


def _make_folder(folder: Path) -> None:
    # Not its parents: below a wrong root directory they would hide the mistake.
    try:
        folder.mkdir(mode=0o750, exist_ok=True)
    except OSError as error:
        raise SocketError(
            f"the folder {folder} cannot be made: {error.strerror}",
            remedy="check that the kubelet's --root-dir is the chart's kubeletRoot",
        ) from error
