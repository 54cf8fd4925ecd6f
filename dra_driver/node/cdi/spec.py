"""CDI specifications: one file for each owner, from which the runtime takes devices and variables.

Facts from upstream's source: containerd 2.4.2 adds CDI after the image's and the pod's
environment (``internal/cri/server/container_create_linux.go``, ``WithCDI`` is the last option), and
CDI replaces a variable of the same name (container-device-interface 1.1.1,
``internal/ociedit/spec_editor.go``, ``addEnv``): these variables override an image's ``ENV``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from dra_driver.model import names
from dra_driver.model.card import Cards, DeviceNode
from dra_driver.model.claims.owner import Owner
from dra_driver.model.errors import InvalidValue
from dra_driver.node.cdi.metadata import mounts
from dra_driver.node.checkpoint.records import (
    ClaimStep,
    PreparedDevice,
    PreparedDevices,
    decode,
    encode,
    record,
)

# Annotations came with 0.6.0, which containerd reads from 1.7.12 on and every 2.x; Kubernetes
# 1.36 needs containerd 2 anyway.
_VERSION: Final = "0.6.0"
_ANNOTATION: Final = f"{names.DRIVER}/prepared"


class Injection(StrEnum):
    """What adds the device nodes to a container: CDI, or the vendor's container runtime, which
    adds them by the variables and must not find them in the container."""

    CDI = "cdi"
    RUNTIME = "runtime"


def device_id(owner: Owner, device: PreparedDevice) -> str:
    """The fully qualified CDI name of the owner's device.

    No other device has the name, and it stays the same after repeats, restarts and upgrades: the
    kubelet remembers it as long as the claim is prepared.
    """
    return f"{names.CDI_KIND}={owner.uid}-{device.cdi_name}"


def render(
    owner: Owner,
    devices: PreparedDevices,
    cards: Cards,
    injection: Injection,
    metadata: Path,
) -> bytes:
    """The owner's specification; the same bytes for the same facts.

    `cards` has every card that a container sees. An annotation, which no container sees, has the
    ``prepared`` record: a lost journal is rebuilt from it. `metadata` is the folder with the
    metadata of all owners.
    """
    prepared = record(ClaimStep.PREPARE_COMPLETED, owner, devices).raw
    mounted = mounts(owner, devices, metadata)
    spec = {
        "cdiVersion": _VERSION,
        "kind": names.CDI_KIND,
        "annotations": {_ANNOTATION: encode(prepared).decode()},
        "devices": [
            {
                "name": f"{owner.uid}-{name}",
                "containerEdits": _edits(device, cards, injection, mounted),
            }
            for device in devices
            for name in (device.cdi_name, *device.cdi_aliases)
        ],
    }
    # In one line: with indentation it is Python that writes the JSON, and takes ten times as long.
    return json.dumps(spec).encode() + b"\n"


def environment(device: PreparedDevice, cards: Cards) -> Iterator[tuple[str, str]]:
    """The variables by which a container finds its cards; `cards` as in `render`."""
    minors = sorted(cards[address].minor for address in device.visible_cards)
    yield names.ENV_VISIBLE_DEVICES, ",".join(str(minor) for minor in minors)
    if device.instance is not None:
        # As the vendor's libraries read it; very old firmware shows no uuid.
        number = f"{cards[device.card].index}:{device.instance.id}"
        yield names.ENV_TOPS_VISIBLE_DEVICES, f"DRS-{device.instance.uuid or number}"


def read_record(content: bytes, uid: str) -> tuple[Owner, tuple[PreparedDevice, ...]]:
    """The owner and its devices from the specification of the owner with that UID. Raises
    InvalidValue for a specification of another owner, or without a complete record."""
    try:
        annotation = json.loads(content)["annotations"][_ANNOTATION]
        found = decode(annotation.encode("ascii"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidValue(f"a CDI file has no readable record of its owner: {error!r}") from error
    if found.owner is None or found.kind != ClaimStep.PREPARE_COMPLETED or not found.devices:
        raise InvalidValue("a CDI file's record of its owner is incomplete")
    if found.owner.uid != uid:
        raise InvalidValue(f"the CDI file of {uid} is of {found.owner.uid}")
    return found.owner, found.devices


def _edits(
    device: PreparedDevice,
    cards: Cards,
    injection: Injection,
    mounted: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    env = [f"{name}={value}" for name, value in environment(device, cards)]
    edits: dict[str, Any] = {"env": env}
    nodes = cards[device.card].nodes
    # An empty list is not the same as none to every runtime.
    if injection is Injection.CDI and nodes:
        edits["deviceNodes"] = [_node(node) for node in nodes]
    if device.cdi_name in mounted:
        edits["mounts"] = [mounted[device.cdi_name]]
    return edits


def _node(node: DeviceNode) -> dict[str, str]:
    elsewhere = {"hostPath": node.host_path} if node.host_path != node.path else {}
    # Without "m": a container must not create device nodes.
    return {"path": node.path, **elsewhere, "permissions": "rw"}
