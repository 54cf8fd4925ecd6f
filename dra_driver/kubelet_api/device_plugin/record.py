"""What the kubelet has on record: which container has which devices.

Two sources, as neither is enough: the pod-resources API leaves out init containers, and the
checkpoint is written at certain moments only. docs/dev/device-plugin.md says how they go together.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api.errors import KubeletError
from dra_driver.kubelet_api.generated import podresources_v1_pb2 as api
from dra_driver.kubelet_api.generated import podresources_v1_pb2_grpc as rpc

_CALL_SECONDS: Final = 10.0
_WRITE_SECONDS: Final = 5.0
_GLANCE: Final = 0.02
_LARGEST: Final = 16 * 1024 * 1024
_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", _LARGEST),
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one container has of a resource. `pod` is ``namespace/name``, or the UID where only
    the checkpoint tells of it."""

    pod: str
    container: str
    resource: str
    devices: frozenset[str]


class KubeletRecord:
    """Reads both sources; of all resources, whosever they are.

    `tell` sends the kubelet a list of devices, and says whether a kubelet listened: it writes its
    checkpoint when it has one (1.36.3, ``genericDeviceUpdateCallback``).
    """

    def __init__(
        self,
        pod_resources: Path,
        checkpoint: Path,
        *,
        tell: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        self._pod_resources = pod_resources
        self._checkpoint = checkpoint
        self._tell = tell
        self._clock = clock
        self._wait = wait or threading.Event().wait

    def read(self) -> frozenset[Recorded]:
        """Everything that is on record now; raises KubeletError where that is not known.

        First the call, which makes the kubelet drop what belongs to pods that ended (1.36.3,
        ``UpdateAllocatedDevices``), then the checkpoint, written after it.
        """
        listed = frozenset(self._list())
        return listed | frozenset(self.checkpoint())

    def checkpoint(self) -> tuple[Recorded, ...]:
        """What the checkpoint says when it was written anew."""
        before = _version(self._checkpoint)
        if not self._tell():
            raise KubeletError(
                "the kubelet does not listen to the device plugin",
                remedy="it registers again within seconds; if this persists, see its readiness",
            )
        end = self._clock() + _WRITE_SECONDS
        while _version(self._checkpoint) == before:
            if self._clock() >= end:
                raise KubeletError(
                    f"the kubelet did not write {self._checkpoint} within {_WRITE_SECONDS:g} s",
                    remedy="check that its disk is neither full nor failing",
                )
            self._wait(_GLANCE)
        return parse_checkpoint(_read(self._checkpoint))

    def _list(self) -> Iterator[Recorded]:
        try:
            with grpc.insecure_channel(f"unix:{self._pod_resources}", options=_OPTIONS) as channel:
                answer = rpc.PodResourcesListerStub(channel).List(
                    api.ListPodResourcesRequest(), timeout=_CALL_SECONDS
                )
        except grpc.RpcError as error:
            raise KubeletError(
                f"the kubelet does not answer on {self._pod_resources}: {error.code().name}, "
                f"{error.details()}",
                remedy="check that the kubelet's --root-dir is the chart's kubeletRootDir",
            ) from error
        for pod in answer.pod_resources:
            for container in pod.containers:
                name = f"{pod.namespace}/{pod.name}"
                for resource, devices in _by_resource(container).items():
                    yield Recorded(name, container.name, resource, frozenset(devices))


def read_checkpoint(path: Path) -> tuple[Recorded, ...]:
    """What the checkpoint says as it stands: all that was given out, as the kubelet writes it after
    each Allocate, and what has ended meanwhile. Raises KubeletError."""
    return parse_checkpoint(_read(path))


def parse_checkpoint(content: bytes) -> tuple[Recorded, ...]:
    """What the device manager's checkpoint says; raises KubeletError for one in a form that we do
    not know (1.36.3, ``pkg/kubelet/cm/devicemanager/checkpoint``; the same since 1.20)."""
    try:
        entries = json.loads(content)["Data"]["PodDeviceEntries"] or ()
        return tuple(
            Recorded(
                str(entry["PodUID"]),
                str(entry["ContainerName"]),
                str(entry["ResourceName"]),
                frozenset(
                    str(device) for each in entry["DeviceIDs"].values() for device in each or ()
                ),
            )
            for entry in entries
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise KubeletError(
            f"the kubelet's checkpoint of devices has a form that is not known: {error!r}",
            remedy="use a version of the driver that knows this kubelet",
        ) from error


def _by_resource(container: api.ContainerResources) -> dict[str, set[str]]:
    """The kubelet lists devices one by one, with their NUMA nodes."""
    found: dict[str, set[str]] = {}
    for devices in container.devices:
        found.setdefault(devices.resource_name, set()).update(devices.device_ids)
    return found


def _version(path: Path) -> tuple[int, int] | None:
    """Another one for each file that is put there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KubeletError(f"the kubelet's {path} cannot be read: {error.strerror}") from error
