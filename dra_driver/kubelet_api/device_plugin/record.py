"""The kubelet's record of which container has which devices.

It has two sources, and neither is complete: the pod-resources API has no init containers, and the
checkpoint is written at certain moments only. docs/dev/device-plugin.md explains both.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from dra_driver.kubelet_api.pod_resources import KubeletError, PodResources
from dra_driver.kubelet_api.sockets import Folders, file_identity
from dra_driver.util.background import Wait
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_CALL_SECONDS: Final = 10.0
_WRITE_SECONDS: Final = 5.0
_GLANCE: Final = 0.02


class Recorded(msgspec.Struct, frozen=True):
    """The devices of one container of one resource. `pod` is ``namespace/name`` from the API, and
    the UID from the checkpoint."""

    pod: str
    container: str
    resource: str
    devices: frozenset[str]


SendList = Callable[[], bool]
"""Sends the kubelet the list of devices; returns whether a kubelet gets it. The kubelet then
writes its checkpoint (1.36.3, ``genericDeviceUpdateCallback``)."""


class KubeletRecord:
    """Reads both sources, of the resources of all plugins."""

    def __init__(
        self,
        folders: Folders,
        *,
        send_list: SendList,
        clock: Clock = time.monotonic,
        wait: Wait | None = None,
    ) -> None:
        self._pod_resources = PodResources(folders.pod_resources, _CALL_SECONDS)
        self._checkpoint = folders.checkpoint
        self._send_list = send_list
        self._clock = clock
        self._wait = wait or threading.Event().wait

    def read(self) -> frozenset[Recorded]:
        """The whole record as it is now; raises KubeletError if it is unknown.

        First the call, which makes the kubelet drop the devices of ended pods (1.36.3,
        ``UpdateAllocatedDevices``), then the checkpoint, which is written after it.
        """
        listed = [
            Recorded(f"{used.namespace}/{used.pod}", used.container, resource, devices)
            for used in self._pod_resources.containers()
            for resource, devices in used.devices.items()
        ]
        return frozenset((*listed, *self.checkpoint()))

    def checkpoint(self) -> tuple[Recorded, ...]:
        """The content of the checkpoint after the kubelet has written it again."""
        before = file_identity(self._checkpoint)
        if not self._send_list():
            raise KubeletError(
                "the kubelet does not listen to the device plugin",
                remedy="it registers again within seconds; if this persists, see its readiness",
            )
        end = self._clock() + _WRITE_SECONDS
        while file_identity(self._checkpoint) == before:
            if self._clock() >= end:
                raise KubeletError(
                    f"the kubelet did not write {self._checkpoint} within {_WRITE_SECONDS:g} s",
                    remedy="check that its disk is neither full nor failing",
                )
            self._wait(_GLANCE)
        return read_checkpoint(self._checkpoint)


def read_checkpoint(path: Path) -> tuple[Recorded, ...]:
    """The device manager's checkpoint as it is: all allocated devices, because the kubelet writes
    it after each Allocate, and perhaps those of ended pods. Raises KubeletError, also for an
    unknown format (1.36.3, ``pkg/kubelet/cm/devicemanager/checkpoint``; the same since 1.20)."""
    try:
        entries = json.loads(path.read_bytes())["Data"]["PodDeviceEntries"] or ()
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
    except OSError as error:
        raise KubeletError(f"the kubelet's {path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise KubeletError(
            f"the kubelet's checkpoint of devices has an unknown format: {error!r}",
            remedy="use a version of the driver that supports this kubelet",
        ) from error


def known_checkpoint(path: Path) -> tuple[Recorded, ...]:
    """As `read_checkpoint`; empty if it cannot be read."""
    try:
        return read_checkpoint(path)
    except KubeletError as error:
        logger.debug("which pods have devices is unknown: %s", error)
        return ()
