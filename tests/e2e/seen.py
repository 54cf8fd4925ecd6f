"""What containers see, held against what their claims were given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dra_driver.model.device import parse_device_name
from dra_driver.model.names import ENV_VISIBLE_DEVICES
from dra_driver.model.pci import PciAddress
from tests.e2e.installation import Installation

_LOOK = f"""
echo visible=${ENV_VISIBLE_DEVICES}
for node in /dev/*; do case $node in /dev/gcu*) echo node=$node;; esac; done
"""
_CARD_NODE = re.compile(r"/dev/gcu(\d+)")


@dataclass(frozen=True)
class Seen:
    """The minors in a container's variable, and those of its device nodes."""

    visible: frozenset[int]
    nodes: frozenset[int]


def look(installation: Installation, namespace: str, pod: str, container: str) -> Seen:
    """What a container sees. Raises CommandError."""
    output = installation.cluster.kubectl(
        "exec", f"--namespace={namespace}", pod, f"--container={container}", "--", "sh", "-c", _LOOK
    )
    lines = dict.fromkeys(output.split())
    [visible] = [line.partition("=")[2] for line in lines if line.startswith("visible=")]
    nodes = [_CARD_NODE.fullmatch(line.partition("=")[2]) for line in lines]
    return Seen(
        frozenset(int(minor) for minor in visible.split(",") if minor),
        frozenset(int(match[1]) for match in nodes if match),
    )


def granted(installation: Installation, pod: dict[str, Any]) -> dict[str, frozenset[PciAddress]]:
    """The cards that the API server says each claim of a pod has, by the pod's name for it."""
    namespace = pod["metadata"]["namespace"]
    made = {
        each["name"]: each["resourceClaimName"]
        for each in pod["status"].get("resourceClaimStatuses", ())
    }
    cards = {}
    for reference in pod["spec"]["resourceClaims"]:
        name = made.get(reference["name"]) or reference["resourceClaimName"]
        claim = installation.cluster.get("resourceclaim", name, f"--namespace={namespace}")
        results = claim["status"]["allocation"]["devices"]["results"]
        cards[reference["name"]] = frozenset(
            parse_device_name(each["device"])[1] for each in results
        )
    return cards


def assert_sees_what_was_granted(installation: Installation, pod: dict[str, Any]) -> None:
    """Every container has the variable and the device nodes of its claims' cards, and no others."""
    node = pod["spec"]["nodeName"]
    cards = granted(installation, pod)
    for container, claims in _containers(pod):
        minors = frozenset(
            installation.minor(node, card) for name in claims for card in cards[name]
        )
        seen = look(installation, pod["metadata"]["namespace"], pod["metadata"]["name"], container)
        assert seen == Seen(minors, minors), f"container {container} of {pod['metadata']['name']}"


def _containers(pod: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for container in pod["spec"]["containers"]:
        claims = container.get("resources", {}).get("claims", ())
        yield container["name"], [claim["name"] for claim in claims]
