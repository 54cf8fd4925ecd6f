"""Telling the kubelet that the driver is here, and telling people when it does not listen."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api.generated import pluginregistration_v1_pb2 as api
from dra_driver.kubelet_api.generated import pluginregistration_v1_pb2_grpc as rpc
from dra_driver.model.names import DRIVER

logger = logging.getLogger(__name__)

# k8s.io/kubelet, package pluginregistration/v1, constants.
PLUGIN_TYPE: Final = "DRAPlugin"


class Registration(rpc.RegistrationServicer):
    """Answers the kubelet's plugin watcher and remembers what it said.

    The kubelet calls `GetInfo` when it sees the socket, then `NotifyRegistrationStatus`; both
    again after each restart of its own. `silence` is how many seconds without them are odd.
    """

    def __init__(
        self,
        *,
        socket: Path,
        endpoint: Path,
        services: Sequence[str],
        silence: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._socket = socket
        self._endpoint = endpoint
        self._services = tuple(services)
        self._silence = silence
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting_since = clock()
        self._registered = False
        self._refusal: str | None = None
        self._told = False

    def GetInfo(  # noqa: N802 (the API's name)
        self,
        request: api.InfoRequest,  # noqa: ARG002 (the API's signature)
        context: grpc.ServicerContext,  # noqa: ARG002 (the API's signature)
    ) -> api.PluginInfo:
        """Who we are, what we serve and where."""
        logger.debug("asked who serves %s", self._socket)
        return api.PluginInfo(
            type=PLUGIN_TYPE,
            name=DRIVER,
            endpoint=str(self._endpoint),
            supported_versions=self._services,
        )

    def NotifyRegistrationStatus(  # noqa: N802 (the API's name)
        self,
        request: api.RegistrationStatus,
        context: grpc.ServicerContext,  # noqa: ARG002 (the API's signature)
    ) -> api.RegistrationStatusResponse:
        """Remember whether the kubelet took us."""
        with self._lock:
            self._registered = request.plugin_registered
            self._refusal = None if self._registered else request.error or "no reason was given"
        if self._registered:
            logger.info("the kubelet registered %s", DRIVER)
        else:
            logger.error("the kubelet refused to register %s: %s", DRIVER, self._refusal)
        return api.RegistrationStatusResponse()

    def wait_from_now(self) -> None:
        """Count the silence from this moment, when the socket has come into being."""
        with self._lock:
            self._waiting_since = self._clock()

    def problem(self) -> str | None:
        """Why the kubelet will not call for claims, or None once it has registered us."""
        with self._lock:
            if self._registered:
                return None
            if self._refusal is not None:
                return (
                    f"the kubelet refused to register {DRIVER}: {self._refusal}; "
                    f"this agent offers {', '.join(self._services)}"
                )
            waited = self._clock() - self._waiting_since
        if waited < self._silence:
            return "waiting for the kubelet to register the driver"
        return (
            f"the kubelet has not called {self._socket} within {self._silence:g} s; check that it "
            "is running and that its --root-dir is the chart's kubeletRootDir, so that its "
            f"plugins_registry is {self._socket.parent}"
        )

    def tell_silence(self) -> None:
        """Log once that the kubelet never came, when it has not for too long."""
        with self._lock:
            settled = self._registered or self._refusal is not None
            overdue = self._clock() - self._waiting_since >= self._silence
            tell = overdue and not settled and not self._told
            self._told = self._told or tell
        if tell:
            logger.error("%s", self.problem())
