"""Nodes with the device plugin, which serves limits: their agents describe the cards in an
annotation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import HeldInstance, Hold, NodeCard, parse_cards
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from kubectl_gcu.cluster.state import ClusterState
from kubectl_gcu.inventory.by_claims import holding_pod
from kubectl_gcu.inventory.views import (
    CardView,
    Holder,
    HolderInstance,
    HoldingPod,
    NodeView,
    ServedBy,
)


def nodes_by_limits(state: ClusterState) -> tuple[list[NodeView], list[str]]:
    """Sorted by name; and a sentence for each node whose annotation cannot be read."""
    pods = {each["metadata"]["uid"]: each for each in state.pods}
    nodes: list[NodeView] = []
    unreadable: list[str] = []
    for node in sorted(state.nodes, key=lambda each: str(each["metadata"]["name"])):
        name = node["metadata"]["name"]
        text = (node["metadata"].get("annotations") or {}).get(ANNOTATION_CARDS)
        if text is None:
            continue
        try:
            cards = sorted(parse_cards(text), key=lambda card: card.address)
        except InvalidValue as error:
            unreadable.append(f"node {name}: {error}")
        else:
            views = tuple(_view(card, pods) for card in cards)
            nodes.append(NodeView(name, ServedBy.LIMITS, views))
    return nodes, unreadable


def _view(card: NodeCard, pods: Mapping[str, Object]) -> CardView:
    holders = tuple(_holders(card.mode, card.held, pods)) if card.mode else ()
    return CardView(
        card.address,
        index=card.index if card.is_numbered else None,
        minor=card.minor if card.is_numbered else None,
        model=card.model,
        uuid=card.uuid,
        memory_mib=card.memory_mib or None,
        slices=card.slices,
        size=card.total,
        problems=(card.problem,) if card.problem else (),
        mode=card.mode,
        holders=holders,
    )


def _holders(mode: Mode, held: tuple[Hold, ...], pods: Mapping[str, Object]) -> Iterator[Holder]:
    for hold in held:
        pod = pods.get(hold.pod)
        users: tuple[HoldingPod, ...] = ()
        if pod is not None:
            users = (holding_pod(pod, (hold.container,)),)
        elif hold.pod:
            users = (HoldingPod("", "", hold.pod, (hold.container,)),)
        yield Holder(mode, hold.amount, "", users, _instance(hold.instance))


def _instance(held: HeldInstance | None) -> HolderInstance | None:
    return HolderInstance(held.profile, held.id, held.profile_id, held.uuid) if held else None
