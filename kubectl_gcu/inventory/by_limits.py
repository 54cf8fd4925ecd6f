"""Nodes with the device plugin, which serves limits: their agents describe the cards in an
annotation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import HeldInstance, Hold, NodeCard, parse_cards
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from dra_driver.model.profile import profile_numbers
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
        try:
            view = node_by_limits(node, pods)
        except InvalidValue as error:
            unreadable.append(str(error))
        else:
            nodes += [view] if view else []
    return nodes, unreadable


def node_by_limits(node: Object, pods: Mapping[str, Object]) -> NodeView | None:
    """None of a node without the annotation. `pods` are by their UIDs. Raises InvalidValue where
    the annotation cannot be read."""
    name = node["metadata"]["name"]
    text = (node["metadata"].get("annotations") or {}).get(ANNOTATION_CARDS)
    if text is None:
        return None
    try:
        cards = sorted(parse_cards(text), key=lambda card: card.address)
    except InvalidValue as error:
        raise InvalidValue(f"node {name}: {error}") from error
    return NodeView(name, ServedBy.LIMITS, tuple(_view(card, pods) for card in cards))


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
        whole=card.whole,
        sizes=tuple(sorted({profile_numbers(name)[0] for name in card.profiles})),
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
