"""The kubelet's half of the device-plugin protocol, whose record of pods a test can keep shut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from dra_driver.kubelet_api.generated import podresources_v1_pb2 as pods_api
from dra_driver.model.devices.plugin_device import RESOURCES
from tests.kill.grants import Grant
from tests.kill.kubelet import NoAnswer
from tests.unit.kubelet_api.device_plugin.device_manager import AdmissionError, DeviceManager

_GONE = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


class PluginKubelet(DeviceManager):
    """An agent cannot see that a pod has ended but by the pod-resources API, which answers while
    the record is `opened` alone: so a test says when grants end. Otherwise the moments of a release
    would be in every trace, by chance.

    It forgets pods as 1.30.14 does: of the last one the API server must tell. `chosen` are the
    devices that a pod's container was to have when it was last admitted.
    """

    def __init__(self, root: Path, namespace: str) -> None:
        super().__init__(root, namespace=namespace, keeps_last=True)
        self.chosen: dict[str, frozenset[str]] = {}
        self._fixed: dict[str, frozenset[str]] = {}
        self._opened = False
        self._before = 0

    @contextmanager
    def opened(self) -> Iterator[None]:
        self._opened = True
        try:
            yield
        finally:
            self._opened = False

    def begin(self, pod: str, grant: Grant, devices: frozenset[str] = frozenset()) -> str:
        """Admit a pod of one container, with these devices where any are given: the error of its
        status, empty for success. Raises NoAnswer, also where the agent was dead before it could be
        called. What is on record is handed out as it is."""
        if any(each.pod == pod for each in self.entries):
            return ""
        self._fixed = {pod: devices} if devices else {}
        resource = RESOURCES[grant.mode]
        try:
            self.admit(pod, "main", resource, max(1, grant.amount))
        except AdmissionError as error:
            gone = isinstance(error.__cause__, grpc.RpcError) and error.__cause__.code() in _GONE
            if gone or self.endpoints[resource].lost:
                raise NoAnswer(str(error)) from error
            return str(error)
        except grpc.RpcError as error:
            if error.code() in _GONE:
                raise NoAnswer(str(error.details())) from error
            raise
        return ""

    def told(self, pod: str) -> set[str]:
        """The CDI devices that the runtime is asked for."""
        with self.news:
            return {
                device.name
                for each in self.entries
                if each.pod == pod
                for device in each.answer.cdi_devices
            }

    def expect(self) -> None:
        """From now on another agent, or a start of its own, makes it hear of all devices anew."""
        with self.news:
            self._before = len(self.registered)

    def hears(self) -> bool:
        """Whether all resources were registered since it was expected, and have been listed."""
        with self.news:
            since = {request.resource_name for request in self.registered[self._before :]}
            return since == set(RESOURCES.values()) and all(
                each.lists and not each.lost for each in self.endpoints.values()
            )

    def recorded(self) -> frozenset[frozenset[str]]:
        """What the containers of pods that have not ended have."""
        with self.news:
            return frozenset(each.devices for each in self.entries if each.pod in self.active)

    def choose(self, pod: str, resource: str, count: int) -> frozenset[str]:
        self.chosen[pod] = self._fixed.get(pod) or super().choose(pod, resource, count)
        return self.chosen[pod]

    def List(  # noqa: N802 (the API's name)
        self, request: pods_api.ListPodResourcesRequest, context: grpc.ServicerContext
    ) -> pods_api.ListPodResourcesResponse:
        if not self._opened:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the test keeps the record shut")
        return super().List(request, context)
