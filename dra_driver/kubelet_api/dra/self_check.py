"""Calls the agent through its own sockets, as the kubelet does, for the liveness probe."""

from __future__ import annotations

import grpc

from dra_driver.kubelet_api.dra import registration, service
from dra_driver.kubelet_api.generated import dra_v1_pb2
from dra_driver.kubelet_api.generated import pluginregistration_v1_pb2 as api
from dra_driver.kubelet_api.rpc import connected, reason
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.util.background import Background


class SelfCheck(Background):
    """Calls every `interval` seconds in its own thread, so that a probe only reads `problem`.

    An answer may take `patience` seconds: the agent must not be killed because slow hardware
    occupies all threads. If the socket is missing, the call fails at once.
    """

    def __init__(
        self, sockets: Sockets, *, interval: float = 10.0, patience: float = 120.0
    ) -> None:
        super().__init__("self-check")
        self._sockets = sockets
        self._interval = interval
        self._patience = patience
        self.problem: str | None = None

    def check(self) -> None:
        """Make both calls, and put their error into `problem`, or None."""
        path = self._sockets.registration
        try:
            with connected(path, registration.SERVICE) as agent:
                info = agent.GetInfo(api.InfoRequest(), timeout=self._patience)
            if info.endpoint != str(self._sockets.service):
                self.problem = (
                    f"another program answers on {path}, and sends the kubelet to {info.endpoint}"
                )
                return
            path = self._sockets.service
            with connected(path, service.SERVICE) as agent:
                request = dra_v1_pb2.NodePrepareResourcesRequest()
                agent.NodePrepareResources(request, timeout=self._patience)
            self.problem = None
        except grpc.RpcError as error:
            self.problem = f"the agent does not answer on {path}: {reason(error)}"

    def run(self) -> None:
        while not self._wait(self._interval):
            self.check()
