"""The registration with the kubelet, and the reason if it is missing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api.generated import pluginregistration_v1_pb2 as api
from dra_driver.kubelet_api.rpc import RpcService
from dra_driver.model.names import DRIVER
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

# k8s.io/kubelet, package pluginregistration/v1, constants.
PLUGIN_TYPE: Final = "DRAPlugin"

SERVICE: Final = RpcService(api.DESCRIPTOR, "Registration")


@dataclass(eq=False, kw_only=True)
class Registration:
    """Answers the kubelet's plugin watcher, and stores its result.

    The kubelet calls `GetInfo` when it finds the socket, then `NotifyRegistrationStatus`; both
    again after each of its restarts. They should come within `timeout` seconds.
    """

    socket: Path
    endpoint: Path
    services: InitVar[Sequence[str]]
    timeout: float = 30.0
    clock: Clock = time.monotonic

    def __post_init__(self, services: Sequence[str]) -> None:
        self._services = tuple(services)
        self._lock = threading.Lock()
        self._waiting_since = self.clock()
        self._registered = False
        self._refusal: str | None = None
        self._logged = False

    def GetInfo(  # noqa: N802 (the API's name)
        self,
        request: api.InfoRequest,  # noqa: ARG002 (the API's signature)
        context: grpc.ServicerContext,  # noqa: ARG002 (the API's signature)
    ) -> api.PluginInfo:
        """The driver's name, its services and their socket."""
        logger.debug("the kubelet called GetInfo on %s", self.socket)
        return api.PluginInfo(
            type=PLUGIN_TYPE,
            name=DRIVER,
            endpoint=str(self.endpoint),
            supported_versions=self._services,
        )

    def NotifyRegistrationStatus(  # noqa: N802 (the API's name)
        self,
        request: api.RegistrationStatus,
        context: grpc.ServicerContext,  # noqa: ARG002 (the API's signature)
    ) -> api.RegistrationStatusResponse:
        """Store whether the kubelet registered the driver."""
        with self._lock:
            self._registered = request.plugin_registered
            self._refusal = None if self._registered else request.error or "no reason was given"
        if self._registered:
            logger.info("the kubelet registered %s", DRIVER)
        else:
            logger.error("the kubelet refused to register %s: %s", DRIVER, self._refusal)
        return api.RegistrationStatusResponse()

    def wait_from_now(self) -> None:
        """Start the timeout: the socket exists now."""
        with self._lock:
            self._waiting_since = self.clock()

    def problem(self) -> str | None:
        """Why the kubelet will not call for claims; None once it has registered the driver."""
        with self._lock:
            if self._registered:
                return None
            if self._refusal is not None:
                return (
                    f"the kubelet refused to register {DRIVER}: {self._refusal}; "
                    f"this agent offers {', '.join(self._services)}"
                )
            waited = self.clock() - self._waiting_since
        if waited < self.timeout:
            return "waiting for the kubelet to register the driver"
        return (
            f"the kubelet has not called {self.socket} within {self.timeout:g} s; check that it "
            "is running and that its --root-dir is the chart's kubeletRootDir, so that its "
            f"plugins_registry is {self.socket.parent}"
        )

    def log_timeout(self) -> None:
        """Log once if the kubelet has not called within the timeout."""
        with self._lock:
            has_called = self._registered or self._refusal is not None
            overdue = self.clock() - self._waiting_since >= self.timeout
            log = overdue and not has_called and not self._logged
            self._logged = self._logged or log
        if log:
            logger.error("%s", self.problem())
