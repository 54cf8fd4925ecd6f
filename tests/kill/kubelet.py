"""The kubelet's half of the plugin protocol, on an agent's real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from dra_driver.kubelet_api.dra import health_service, registration, service
from dra_driver.kubelet_api.generated import (
    dra_health_v1_pb2,
    dra_v1_pb2,
    pluginregistration_v1_pb2,
)
from dra_driver.kubelet_api.rpc import Stub
from dra_driver.model.claims.claim import ClaimRef

_CALL_SECONDS = 45.0  # kubelet 1.36.3, pkg/kubelet/cm/dra/plugin
_EVERY = 0.01


class NoAnswer(Exception):
    """The agent went away before it answered."""


class Connection:
    """A channel to an agent's service, which many threads may use; a kubelet keeps one open."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._stub = Stub(channel, service.SERVICE)

    def prepare(self, ref: ClaimRef) -> str:
        """The claim's error, empty for success."""
        request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[_claim(ref)])
        answers = self._stub.NodePrepareResources(request, timeout=_CALL_SECONDS).claims
        assert set(answers) == {ref.uid}
        answer = answers[ref.uid]
        has_devices = answer.devices and all(device.cdi_device_ids for device in answer.devices)
        assert answer.error or has_devices
        return str(answer.error)

    def unprepare(self, ref: ClaimRef) -> str:
        """The claim's error, empty for success."""
        request = dra_v1_pb2.NodeUnprepareResourcesRequest(claims=[_claim(ref)])
        answers = self._stub.NodeUnprepareResources(request, timeout=_CALL_SECONDS).claims
        assert set(answers) == {ref.uid}
        return str(answers[ref.uid].error)


class Kubelet:
    """Calls the one agent whose sockets are at `registration`; where the service is, that says."""

    def __init__(self, registration: Path) -> None:
        self._registration = registration
        self._endpoint = ""

    def register(self) -> bool:
        """One attempt to learn of the agent and to tell it so, as the kubelet's watcher of
        ``plugins_registry`` does; says whether it listened."""
        if not _listens(self._registration):
            return False
        try:
            with _dial(self._registration) as channel:
                stub = Stub(channel, registration.SERVICE)
                info = stub.GetInfo(pluginregistration_v1_pb2.InfoRequest(), timeout=_CALL_SECONDS)
                status = pluginregistration_v1_pb2.RegistrationStatus(plugin_registered=True)
                stub.NotifyRegistrationStatus(status, timeout=_CALL_SECONDS)
        except NoAnswer:
            return False
        self._endpoint = info.endpoint
        return True

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """One for many calls. Raises NoAnswer in them."""
        with _dial(Path(self._endpoint)) as channel:
            yield Connection(channel)

    def prepare(self, ref: ClaimRef) -> str:
        """The claim's error, empty for success. Raises NoAnswer."""
        with self.connection() as connection:
            return connection.prepare(ref)

    def unprepare(self, ref: ClaimRef) -> str:
        """The claim's error, empty for success. Raises NoAnswer."""
        with self.connection() as connection:
            return connection.unprepare(ref)

    @contextmanager
    def health(self) -> Iterator[Iterator[dra_health_v1_pb2.NodeWatchResourcesResponse]]:
        """The lists of a health stream, as they come."""
        with _dial(Path(self._endpoint)) as channel:
            stub = Stub(channel, health_service.SERVICES[1])
            lists = stub.NodeWatchResources(dra_health_v1_pb2.NodeWatchResourcesRequest())
            try:
                yield lists
            finally:
                lists.cancel()

    def wait(self, seconds: float) -> None:
        """Try to register until it succeeds; raises NoAnswer after that time."""
        deadline = time.monotonic() + seconds
        while not self.register():
            if time.monotonic() > deadline:
                raise NoAnswer(f"{self._registration} does not answer for {seconds:g} s")
            time.sleep(_EVERY)


def _claim(ref: ClaimRef) -> dra_v1_pb2.Claim:
    return dra_v1_pb2.Claim(namespace=ref.namespace, name=ref.name, uid=ref.uid)


def _listens(path: Path) -> bool:
    """Whether there is a process behind the socket: costs a fiftieth of a call that fails."""
    with socket.socket(socket.AF_UNIX) as caller:
        return caller.connect_ex(str(path)) == 0


@contextmanager
def _dial(path: Path) -> Iterator[grpc.Channel]:
    try:
        with grpc.insecure_channel(f"unix:{path}") as channel:
            yield channel
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            raise NoAnswer(f"{path}: {error.details()}") from error
        raise
