"""Calls the agent through its own sockets, as the kubelet does, for the liveness probe."""

from __future__ import annotations

from typing import Final

import grpc

from dra_driver.kubelet_api.generated import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    pluginregistration_v1_pb2,
    pluginregistration_v1_pb2_grpc,
)
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.util.background import Background

# A connection of its own each time: one that is kept outlives the socket's file, without which
# the kubelet reaches nobody.
_OPTIONS: Final = (("grpc.use_local_subchannel_pool", 1),)


class SelfCheck(Background):
    """Calls every `interval` seconds in a thread of its own, so that a probe only reads `problem`.

    `patience` is for how many seconds an answer may be out. It is long because calls wait their
    turn: while slow hardware keeps all threads busy the agent is not to be killed. Where the
    socket is not there the answer is none, and comes at once.
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
        """Make both calls, and put into `problem` what is wrong with them, or None."""
        self.problem = self._ask_who() or self._ask_service()

    def _ask_who(self) -> str | None:
        path = self._sockets.registration
        try:
            with grpc.insecure_channel(f"unix:{path}", options=_OPTIONS) as channel:
                registration = pluginregistration_v1_pb2_grpc.RegistrationStub(channel)
                request = pluginregistration_v1_pb2.InfoRequest()
                info = registration.GetInfo(request, timeout=self._patience)
        except grpc.RpcError as error:
            return f"the agent does not answer on {path}: {_words(error)}"
        if info.endpoint != str(self._sockets.service):
            return f"somebody else answers on {path}, and sends the kubelet to {info.endpoint}"
        return None

    def _ask_service(self) -> str | None:
        path = self._sockets.service
        try:
            with grpc.insecure_channel(f"unix:{path}", options=_OPTIONS) as channel:
                service = dra_v1_pb2_grpc.DRAPluginStub(channel)
                request = dra_v1_pb2.NodePrepareResourcesRequest()
                service.NodePrepareResources(request, timeout=self._patience)
        except grpc.RpcError as error:
            return f"the agent does not answer on {path}: {_words(error)}"
        return None

    def run(self) -> None:
        while not self._wait(self._interval):
            self.check()


def _words(error: grpc.RpcError) -> str:
    return f"{error.code().name}, {error.details()}"
