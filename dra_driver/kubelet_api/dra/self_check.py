"""Calls the agent through its own sockets, as the kubelet does, for the liveness probe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc

from dra_driver.kubelet_api.dra import registration, service
from dra_driver.kubelet_api.generated import dra_v1_pb2, pluginregistration_v1_pb2
from dra_driver.kubelet_api.rpc import RpcService, Stub, connected, reason
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
        self.problem = self._call(
            self._sockets.registration, registration.SERVICE, self._check_registration
        ) or self._call(self._sockets.service, service.SERVICE, self._check_service)

    def _call(
        self, path: Path, called: RpcService, check: Callable[[Stub], str | None]
    ) -> str | None:
        try:
            with connected(path, called) as agent:
                return check(agent)
        except grpc.RpcError as error:
            return f"the agent does not answer on {path}: {reason(error)}"

    def _check_registration(self, agent: Stub) -> str | None:
        info = agent.GetInfo(pluginregistration_v1_pb2.InfoRequest(), timeout=self._patience)
        if info.endpoint == str(self._sockets.service):
            return None
        path = self._sockets.registration
        return f"another program answers on {path}, and sends the kubelet to {info.endpoint}"

    def _check_service(self, agent: Stub) -> None:
        agent.NodePrepareResources(dra_v1_pb2.NodePrepareResourcesRequest(), timeout=self._patience)

    def run(self) -> None:
        while not self._wait(self._interval):
            self.check()
