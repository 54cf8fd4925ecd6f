"""What containers see, held against what their claims were given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from dra_driver.model.claims.claim import Result, results
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.mode import Mode
from dra_driver.model.names import ENV_TOPS_VISIBLE_DEVICES, ENV_VISIBLE_DEVICES
from dra_driver.model.pci import PciAddress
from dra_driver.simulator.machine import PlacedInstance
from tests.cluster.errors import CommandError
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.installation import Installation

_LOOK = f"""
echo visible=${ENV_VISIBLE_DEVICES}
echo tops=${ENV_TOPS_VISIBLE_DEVICES}
for node in /dev/*; do case $node in /dev/gcu*) echo node=$node;; esac; done
"""
_CARD_NODE = re.compile(r"node=/dev/gcu(\d+)")

Object = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """The minors in a container's variable, those of its device nodes, and its instance."""

    visible: frozenset[int]
    nodes: frozenset[int]
    tops: str = ""


@dataclass(frozen=True)
class Grant:
    """One result of a claim's allocation. `amount` is its slices or size."""

    claim: str
    request: str
    mode: Mode
    card: PciAddress
    amount: int | None


def look(installation: Installation, namespace: str, pod: str, container: str) -> Seen:
    """What a container sees. Raises CommandError and WaitTimeout."""
    run = partial(installation.cluster.execute, namespace, pod, container=container)
    # A kubelet that has just started may end the stream before the output.
    output = wait_until(
        lambda: run("sh", "-c", _LOOK), PATIENCE, f"output of {pod}", retry_on=(CommandError,)
    )
    visible, tops, *nodes = output.splitlines()
    matches = [_CARD_NODE.fullmatch(line) for line in nodes]
    return Seen(
        frozenset(int(minor) for minor in visible.partition("=")[2].split(",") if minor),
        frozenset(int(match[1]) for match in matches if match),
        tops.partition("=")[2],
    )


def granted(installation: Installation, pod: Object) -> list[Grant]:
    """What the API server says the claims of a pod have, by the pod's names for them."""
    scope = f"--namespace={pod['metadata']['namespace']}"
    return [
        grant
        for reference, name in claim_names(pod).items()
        for grant in grants(reference, installation.cluster.get("resourceclaim", name, scope))
    ]


def claim_names(pod: Object) -> dict[str, str]:
    """The names of a pod's claims by the pod's names for them; without those that nobody has made
    of their template yet."""
    made = {
        each["name"]: each.get("resourceClaimName", "")
        for each in pod["status"].get("resourceClaimStatuses", ())
    }
    names = {
        each["name"]: made.get(each["name"]) or each.get("resourceClaimName", "")
        for each in pod["spec"].get("resourceClaims", ())
    }
    return {reference: name for reference, name in names.items() if name}


def grants(reference: str, claim: Object) -> list[Grant]:
    """What was allocated to a claim, by the name that a pod has for it."""
    return [_grant(reference, result) for result in results(claim)]


def cards(installation: Installation, pod: Object) -> frozenset[PciAddress]:
    """The cards of all claims of a pod."""
    return frozenset(grant.card for grant in granted(installation, pod))


def assert_sees_what_was_granted(installation: Installation, pod: Object) -> None:
    """Every container has the variables and the device nodes of what it uses, and no others."""
    node = pod["spec"]["nodeName"]
    grants = granted(installation, pod)
    for container, used in used_by(pod, grants):
        minors = frozenset(installation.minor(node, grant.card) for grant in used)
        metadata = pod["metadata"]
        seen = look(installation, metadata["namespace"], metadata["name"], container)
        where = f"container {container} of {metadata['name']}"
        assert (seen.visible, seen.nodes) == (minors, minors), where
        expected = {f"DRS-{_instance(installation, node, seen, each).uuid}" for each in _drs(used)}
        assert {seen.tops} - {""} == expected, where


def used_by(pod: Object, grants: list[Grant]) -> Iterator[tuple[str, list[Grant]]]:
    """Each container's name, and which of the pod's grants it uses."""
    for container, uses in _containers(pod):
        yield (
            container,
            [
                grant
                for grant in grants
                if (grant.claim, "") in uses or (grant.claim, grant.request) in uses
            ],
        )


def _drs(grants: list[Grant]) -> list[Grant]:
    return [grant for grant in grants if grant.mode is Mode.DRS]


def _instance(installation: Installation, node: str, seen: Seen, grant: Grant) -> PlacedInstance:
    """The instance that the container names, as the machine has it: on the card of the claim, and
    of the granted size."""
    placed = installation.machine(node).instances(str(grant.card))
    [named] = [each for each in placed if seen.tops == f"DRS-{each.uuid}"]
    assert named.profile.startswith(f"{grant.amount}g.")
    return named


def _grant(claim: str, result: Result) -> Grant:
    mode, card = parse_device_name(result.device)
    amounts = [int(amount) for amount in result.consumed.values()]
    return Grant(claim, result.request, mode, card, amounts[0] if amounts else None)


def _containers(pod: Object) -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """Each container's name, and the claims and requests that it uses; "" is all requests."""
    for container in pod["spec"]["containers"]:
        claims = container.get("resources", {}).get("claims", ())
        yield container["name"], {(claim["name"], claim.get("request", "")) for claim in claims}
