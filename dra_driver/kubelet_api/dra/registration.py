"""The registration with the kubelet, and the reason if it is missing."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Final

import grpc

from dra_driver.kubelet_api.dra import health_service
from dra_driver.kubelet_api.generated import pluginregistration_v1_pb2 as api
from dra_driver.kubelet_api.rpc import RpcService
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.names import DRIVER
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

# k8s.io/kubelet, package pluginregistration/v1, constants.
PLUGIN_TYPE: Final = "DRAPlugin"

# The kubelet uses the newest version of each service that it knows. Up to 1.36 it watches the
# health in any case, from 1.37 on only if the service is listed here.
VERSIONS: Final = ("v1.DRAPlugin", *(each.full_name for each in health_service.SERVICES))

SERVICE: Final = RpcService(api.DESCRIPTOR, "Registration")


@dataclass(eq=False)
class Registration:
    """Answers the kubelet's plugin watcher, and stores its result.

    The kubelet calls `GetInfo` when it finds the socket, then `NotifyRegistrationStatus`; both
    again after each of its restarts. They should come within `timeout` seconds.
    """

    sockets: Sockets
    timeout: float
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        self._waiting_since = self.clock()
        # Empty once the kubelet has registered the driver; None while it has not called.
        self._refusal: str | None = None
        self._is_late = False

    def GetInfo(self, request: api.InfoRequest, context: grpc.ServicerContext) -> api.PluginInfo:
        """The driver's name, its services and their socket."""
        logger.debug("the kubelet called GetInfo on %s", self.sockets.registration)
        return api.PluginInfo(
            type=PLUGIN_TYPE,
            name=DRIVER,
            endpoint=str(self.sockets.service),
            supported_versions=VERSIONS,
        )

    def NotifyRegistrationStatus(
        self, request: api.RegistrationStatus, context: grpc.ServicerContext
    ) -> api.RegistrationStatusResponse:
        """Store whether the kubelet registered the driver."""
        if request.plugin_registered:
            self._refusal = ""
            logger.info("the kubelet registered %s", DRIVER)
        else:
            self._refusal = request.error or "no reason was given"
            logger.error("the kubelet refused to register %s: %s", DRIVER, self._refusal)
        return api.RegistrationStatusResponse()

    def wait_from_now(self) -> None:
        """Start the timeout: the socket exists now."""
        self._waiting_since = self.clock()

    def problem(self) -> str | None:
        """Why the kubelet will not call for claims; None once it has registered the driver."""
        refusal = self._refusal
        if refusal == "":
            return None
        if refusal is not None:
            return (
                f"the kubelet refused to register {DRIVER}: {refusal}; "
                f"this agent offers {', '.join(VERSIONS)}"
            )
        if self.clock() - self._waiting_since < self.timeout:
            return "waiting for the kubelet to register the driver"
        socket = self.sockets.registration
        late = (
            f"the kubelet has not called {socket} within {self.timeout:g} s; check that it "
            "is running and that its --root-dir is the chart's kubeletRootDir, so that its "
            f"plugins_registry is {socket.parent}"
        )
        if not self._is_late:  # the agent may have another problem, which it reports first
            logger.error("%s", late)
        self._is_late = True
        return late
