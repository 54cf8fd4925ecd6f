"""What pods by the vendor's limits ask for and have, alike in both ways of giving out cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import profile_size
from tests.e2e.installation import Installation
from tests.e2e.seen import granted, look, used_by

Object = dict[str, Any]
Limits = Mapping[str, Mapping[str, int | str]]
"""By container."""
Holds = dict[str, list[tuple[str, int]]]
"""By container, of which card how much."""

WHOLE, SHARED, DRS = (RESOURCES[mode] for mode in (Mode.WHOLE, Mode.SHARED, Mode.DRS))


def limits_of(spec: Object) -> Limits:
    """Of a pod's containers."""
    return {each["name"]: each["resources"]["limits"] for each in spec["containers"]}


def written(folder: Path) -> Iterator[tuple[str, Limits]]:
    """Name (a Deployment's, for each replica) and limits of each pod that the manifests make."""
    for path in sorted(folder.glob("*.yaml")):
        for each in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            spec, name = each["spec"], each["metadata"]["name"]
            if each["kind"] == "Pod":
                yield name, limits_of(spec)
            else:
                for _ in range(spec["replicas"]):
                    yield name, limits_of(spec["template"]["spec"])


def claimed(installation: Installation, pod: Object) -> Holds:
    """What the claims have that the containers of the pod use."""
    grants = granted(installation, pod)
    return {
        container: [(str(each.card), each.amount or 1) for each in used]
        for container, used in used_by(pod, grants)
    }


def assert_has(installation: Installation, pod: Object, asked: Limits, holds: Holds) -> None:
    """Each container holds what its limit says, and sees that; slices and instances of a pod are
    of one card."""
    assert holds.keys() == asked.keys()
    for container, limits in asked.items():
        [(resource, amount)] = limits.items()
        parts = [1] * int(amount) if resource == WHOLE else [int(amount)]
        assert [part for _, part in holds[container]] == parts
        seen = _seen_sizes(installation, pod, container, [card for card, _ in holds[container]])
        assert seen == (parts if resource == DRS else [])
    if not any(WHOLE in limits for limits in asked.values()):
        assert len({card for each in holds.values() for card, _ in each}) == 1


def _seen_sizes(
    installation: Installation, pod: Object, container: str, cards: list[str]
) -> list[int]:
    """The sizes of the instances of these cards that the container names; it sees no others."""
    node, metadata = pod["spec"]["nodeName"], pod["metadata"]
    seen = look(installation, metadata["namespace"], metadata["name"], container)
    minors = frozenset(installation.minor(node, PciAddress.parse(card)) for card in cards)
    assert (seen.visible, seen.nodes) == (minors, minors), f"{metadata['name']}, {container}"
    return [
        profile_size(each.profile)
        for card in cards
        for each in installation.machine(node).instances(card)
        if seen.tops == f"DRS-{each.uuid}"
    ]
