"""Device metadata (KEP-5304): attributes of a claim's devices as files in its containers.

Files, their place in the container and their content are those that upstream's helper writes
(k8s.io/dynamic-resource-allocation 0.37.2, ``api/metadata/doc.go``, ``kubeletplugin/metadata.go``).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dra_driver.model.card import Card
from dra_driver.model.claims.owner import ContainerAllocation, Owner
from dra_driver.model.devices.device import card_attributes
from dra_driver.model.effects import NO_FAULTS, Effects, Point
from dra_driver.model.identifiers import check_id
from dra_driver.model.names import DRIVER
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.directory import CdiError
from dra_driver.node.checkpoint.records import PreparedDevice, PreparedDevices
from dra_driver.util.os_errors import OsErrorAs

_IN_CONTAINER: Final = "/var/run/kubernetes.io/dra-device-attributes"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
"""Newest first. A reader takes the first object of the stream that it knows."""


def mounts(owner: Owner, devices: PreparedDevices, host: Path) -> Mapping[str, Mapping[str, Any]]:
    """The mount of each request that has metadata, by the CDI name of the request's first device.
    `host` has the files of all owners."""
    found: dict[str, dict[str, Any]] = {}
    for request, (first, *_) in _by_request(devices).items():
        assert not isinstance(owner, ContainerAllocation)
        assert first.metadata is not None
        template = first.metadata.pod_claim
        claim = f"resourceclaimtemplates/{template}" if template else f"resourceclaims/{owner.name}"
        found[first.cdi_name] = {
            "hostPath": f"{host}/{owner.uid}/{request}.json",
            "containerPath": f"{_IN_CONTAINER}/{claim}/{request}/{DRIVER}-metadata.json",
            "options": ["ro", "bind"],
        }
    return found


def contents(
    owner: Owner, devices: PreparedDevices, cards: Mapping[PciAddress, Card]
) -> Mapping[str, bytes]:
    """The file of each request that has metadata: a stream with one object for each version."""
    return {
        request: b"".join(
            json.dumps(_metadata(owner, every, cards, version)).encode() + b"\n"
            for version in _VERSIONS
        )
        for request, every in _by_request(devices).items()
    }


class MetadataDirectory:
    """The files of all owners on the host, ``<UID>/<request>.json``; a runtime mounts them, so the
    path must be the same in the agent's pod. Each method is called with the owner's lock held, and
    raises CdiError."""

    def __init__(self, path: Path, *, effects: Effects = NO_FAULTS) -> None:
        self.path = path
        self._effects = effects

    def read(self, uid: str, request: str) -> bytes | None:
        """The file of a request, or None."""
        path = self._folder(uid) / f"{request}.json"
        with _errors(path):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def write(self, uid: str, files: Mapping[str, bytes]) -> None:
        """Write the file of each request. A container that has the former one keeps it."""
        folder = self._folder(uid)
        for request, content in files.items():
            new, path = folder / f"{request}.new", folder / f"{request}.json"
            with _errors(path):
                with self._effects(Point.CDI_WRITE):
                    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
                    new.write_bytes(content)
                    new.chmod(0o644)
                with self._effects(Point.CDI_RENAME):
                    new.replace(path)

    def remove(self, uid: str) -> None:
        """Remove the files of an owner."""
        folder = self._folder(uid)
        with _errors(folder):
            if folder.exists():
                shutil.rmtree(folder)

    def _folder(self, uid: str) -> Path:
        return self.path / check_id(uid, "UID")


def _by_request(devices: PreparedDevices) -> Mapping[str, Sequence[PreparedDevice]]:
    found: dict[str, list[PreparedDevice]] = {}
    for device in devices:
        if device.metadata is not None:
            found.setdefault(device.request, []).append(device)
    return found


def _metadata(
    owner: Owner,
    devices: Sequence[PreparedDevice],
    cards: Mapping[PciAddress, Card],
    version: str,
) -> dict[str, Any]:
    assert not isinstance(owner, ContainerAllocation)
    metadata = devices[0].metadata
    assert metadata is not None
    identity = {"name": owner.name, "namespace": owner.namespace, "uid": owner.uid}
    described = [
        {
            "driver": DRIVER,
            "pool": device.pool,
            "name": device.device_name,
            "attributes": card_attributes(cards[device.card], device.mode),
        }
        for device in devices
    ]
    return {
        "kind": "DeviceMetadata",
        "apiVersion": f"metadata.resource.k8s.io/{version}",
        "metadata": {**identity, "generation": 1},
        **({"podClaimName": metadata.pod_claim} if metadata.pod_claim else {}),
        "requests": [{"name": metadata.request, "devices": described}],
    }


def _errors(path: Path) -> OsErrorAs:
    return OsErrorAs(
        CdiError,
        "the device metadata",
        path,
        remedy="check that the kubelet's folder of the plugin is neither full nor read-only",
    )
