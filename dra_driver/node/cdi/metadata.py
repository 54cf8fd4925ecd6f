"""Device metadata (KEP-5304): attributes of a claim's devices as files in its containers.

Files, their place in the container and their content are those that upstream's helper writes
(k8s.io/dynamic-resource-allocation 0.37.2, ``api/metadata/doc.go``, ``kubeletplugin/metadata.go``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from dra_driver.model.card import Cards
from dra_driver.model.claims.owner import ContainerAllocation, Owner
from dra_driver.model.devices.device import card_attributes
from dra_driver.model.names import DRIVER
from dra_driver.node.checkpoint.records import MetadataRef, PreparedDevice, PreparedDevices

_IN_CONTAINER: Final = "/var/run/kubernetes.io/dra-device-attributes"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
"""Newest first. A reader takes the first object of the stream that it knows."""


def mounts(owner: Owner, devices: PreparedDevices, host: Path) -> Mapping[str, Mapping[str, Any]]:
    """The mount of each request that has metadata, by the CDI name of the request's first device.
    `host` has the files of all owners."""
    found: dict[str, dict[str, Any]] = {}
    for request, (metadata, every) in _by_request(devices).items():
        assert not isinstance(owner, ContainerAllocation)
        template = metadata.pod_claim
        claim = f"resourceclaimtemplates/{template}" if template else f"resourceclaims/{owner.name}"
        found[every[0].cdi_name] = {
            "hostPath": f"{host}/{owner.uid}/{request}.json",
            "containerPath": f"{_IN_CONTAINER}/{claim}/{request}/{DRIVER}-metadata.json",
            "options": ["ro", "bind"],
        }
    return found


def contents(owner: Owner, devices: PreparedDevices, cards: Cards) -> Mapping[str, bytes]:
    """The file of each request that has metadata: a stream with one object for each version."""
    found: dict[str, bytes] = {}
    for request, (metadata, every) in _by_request(devices).items():
        assert not isinstance(owner, ContainerAllocation)
        described = [
            {
                "driver": DRIVER,
                "pool": device.pool,
                "name": device.device_name,
                "attributes": card_attributes(cards[device.card], device.mode),
            }
            for device in every
        ]
        objects = (
            {
                "kind": "DeviceMetadata",
                "apiVersion": f"metadata.resource.k8s.io/{version}",
                "metadata": {**msgspec.to_builtins(owner), "generation": 1},
                **({"podClaimName": metadata.pod_claim} if metadata.pod_claim else {}),
                "requests": [{"name": metadata.request, "devices": described}],
            }
            for version in _VERSIONS
        )
        found[request] = b"".join(json.dumps(each).encode() + b"\n" for each in objects)
    return found


def _by_request(devices: PreparedDevices) -> dict[str, tuple[MetadataRef, list[PreparedDevice]]]:
    found: dict[str, tuple[MetadataRef, list[PreparedDevice]]] = {}
    for device in devices:
        if device.metadata is not None:
            found.setdefault(device.request, (device.metadata, []))[1].append(device)
    return found
