"""Claims that ask for device metadata, and where containers find it."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.node.world import World, gcu_config

ASKED = gcu_config("FromClass", deviceMetadata=True)
SILENT = gcu_config("FromClass")
REFUSED = gcu_config("FromClaim", deviceMetadata=False)


def of_template(made: dict[str, Any], pod_claim: str) -> dict[str, Any]:
    made["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": pod_claim}
    return made


def mounted(world: World) -> dict[str, str]:
    """By path in the container, the path on the host."""
    return {
        mount["containerPath"]: mount["hostPath"]
        for text in world.files().values()
        for device in json.loads(text)["devices"]
        for mount in device["containerEdits"].get("mounts", ())
    }
