"""The annotations and labels of a Node that publishes no ResourceSlices. Pure.

docs/dev/extender.md describes the fields.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from dra_driver.device_plugin.inventory import (
    NodeDevices,
    granted_total,
    offered_total,
)
from dra_driver.kube.node_metadata import NodeMetadata
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.card import Card
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.devices.device import device_name
from dra_driver.model.devices.node_cards import (
    UNNUMBERED,
    HeldInstance,
    Hold,
    NodeCard,
    render_cards,
)
from dra_driver.model.devices.topology import format_bridges
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import ProfileTable

# The vendor's (gcushare-device-plugin), which its inspect tool and others read.
SHARED_CAPACITY: Final = "enflame.com/gcu-shared-capacity"
DRS_CAPACITY: Final = "enflame.com/gcu-drs-capacity"

GCUSHARE: Final = "enflame.com/gcushare"


def node_metadata(view: NodeDevices, recorded: Collection[Recorded]) -> NodeMetadata | None:
    """What the Node is to have, None while the cards have not been read. `recorded` is from the
    kubelet's checkpoint, with the UIDs of pods."""
    if view.cards is None:
        return None
    cards = node_cards(view, recorded)
    return {"annotations": node_annotations(view, cards), "labels": node_labels(cards)}


def node_cards(view: NodeDevices, recorded: Collection[Recorded]) -> tuple[NodeCard, ...]:
    """All cards, sorted."""
    # Sorted, because an init container and the next container can have the same devices, and the
    # kubelet writes them in a random order.
    ordered = sorted(recorded, key=lambda each: (each.pod, each.container))
    owners = {each.devices: each for each in ordered}
    return tuple(_card(view, address, owners) for address in view.addresses)


def node_annotations(view: NodeDevices, cards: tuple[NodeCard, ...]) -> Mapping[str, str]:
    """The driver's annotation, and the vendor's two, which say how the cards could be divided."""
    numbered = [each for each in cards if each.is_numbered]
    return {
        ANNOTATION_CARDS: render_cards(cards),
        SHARED_CAPACITY: _json({str(each.minor): each.slices for each in numbered if each.slices}),
        DRS_CAPACITY: _json(
            {
                "devices": [
                    {"index": str(each.index), "minor": str(each.minor), "capacity": each.total}
                    for each in numbered
                    if each.total
                ],
                "profiles": _profile_ids(view),
            }
        ),
    }


def node_labels(cards: Collection[NodeCard]) -> Mapping[str, str]:
    """The vendor's label, by which pods select nodes whose cards can be divided."""
    return {GCUSHARE: "true"} if any(each.slices or each.total for each in cards) else {}


def _card(
    view: NodeDevices, address: PciAddress, owners: Mapping[frozenset[str], Recorded]
) -> NodeCard:
    card = (view.cards or {}).get(address)
    holders = view.ledger.holders_of(address)
    grants = [
        (claim.owner, device.instance)
        for claim, device in holders
        if isinstance(claim.owner, ContainerAllocation)
    ]
    failing = {mode for mode in Mode if device_name(mode, address) in view.failing}
    # In other modes than that in use, which is a field of its own, what a free card would offer.
    total = {
        mode: granted_total(view.ledger, address, mode)
        or (mode not in failing and offered_total(view, card, mode))
        or 0
        for mode in Mode
    }
    table = view.table(card) if card else None
    present = grants[0][0].mode if grants else None
    return NodeCard(
        address=address,
        index=card.index if card else UNNUMBERED,
        minor=card.minor if card else UNNUMBERED,
        whole=bool(total[Mode.WHOLE]),
        slices=total[Mode.SHARED],
        profiles=tuple(each.name for each in table) if table and total[Mode.DRS] else (),
        total=total[Mode.DRS] if table else 0,
        mode=present,
        held=tuple(_holds(grants, address, owners, table)),
        problem=_problem(card, claimed=len(grants) < len(holders), failing=present in failing),
        bridges=format_bridges(card.pcie_bridges) if card else "",
        root=card.pcie_root or "" if card else "",
        numa=card.numa_node if card else None,
        model=card.model if card else "",
        uuid=card.uuid if card else "",
        memory_mib=card.memory_mib if card else 0,
    )


def _holds(
    grants: Collection[tuple[ContainerAllocation, Instance | None]],
    card: PciAddress,
    owners: Mapping[frozenset[str], Recorded],
    table: ProfileTable | None,
) -> Iterator[Hold]:
    """A device of two containers, an init container and the next one, counts once."""
    counted: set[str] = set()
    for grant, instance in grants:
        new = {str(each) for each in grant.devices if each.card == card} - counted
        counted |= new
        if new:
            owner = owners.get(frozenset(map(str, grant.devices)))
            pod, container = (owner.pod, owner.container) if owner else ("", "")
            yield Hold(pod, container, len(new), _instance(instance, table))


def _instance(instance: Instance | None, table: ProfileTable | None) -> HeldInstance | None:
    ids = {profile.name: profile.id for profile in table or ()}
    if instance is None or instance.profile not in ids:
        return None
    return HeldInstance(instance.profile, ids[instance.profile], instance.id, instance.uuid or "")


def _problem(card: Card | None, *, claimed: bool, failing: bool) -> str:
    if claimed:
        return "claimed"  # DRA serves it until its claims end
    if card is None:
        return "lost"
    known = (each.value or each.taint.rpartition("/")[2] for each in card.problems)
    return next(known, "failing" if failing else "")


def _profile_ids(view: NodeDevices) -> dict[str, str]:
    tables = (view.table(card) for card in (view.cards or {}).values())
    return {each.name: str(each.id) for table in tables if table for each in table}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
