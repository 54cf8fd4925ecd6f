"""The inventory as the JSON of the vendor's gcushare-scheduler-plugin (its ``inspect.sh``)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dra_driver.model.mode import Mode
from kubectl_gcu.inventory.views import CardView, Holder, HoldingPod, NodeView


def as_gcushare(nodes: Sequence[NodeView], mode: Mode, *, one: bool) -> str:
    """What ``inspect.sh`` prints for slices (`Mode.SHARED`), and ``inspect.sh --drs true`` for
    instances (`Mode.DRS`): the cards that are offered in the mode, and are in no other now. It is a
    list of nodes; with `one`, the object of the first node, as of ``inspect.sh --node``.

    A card is called by its minor; one whose minor nobody publishes, by its PCI address.
    """
    views = [
        _node(node, mode) for node in nodes if one or any(_units(card, mode) for card in node.cards)
    ]
    return json.dumps(views[0] if one else views, indent=2) + "\n"


def _node(node: NodeView, mode: Mode) -> dict[str, Any]:
    cards = [card for card in node.cards if _units(card, mode) and card.mode in {None, mode}]
    return {
        "name": node.name,
        **_amounts(sum(_units(card, mode) for card in cards), sum(card.used for card in cards)),
        "devices": {
            str(card.address) if card.minor is None else str(card.minor): _device(card, mode)
            for card in cards
        },
    }


def _device(card: CardView, mode: Mode) -> dict[str, Any]:
    return {
        **({"virt": "DRS" if mode is Mode.DRS else "Shared"} if card.mode else {}),
        **_amounts(_units(card, mode), card.used),
        "pods": list(_pods(card)),
    }


def _amounts(total: int, used: int) -> dict[str, int]:
    return {"totalGCU": total, "usedGCU": used, "availableGCU": total - used}


def _units(card: CardView, mode: Mode) -> int:
    return card.size if mode is Mode.DRS else card.slices


def _pods(card: CardView) -> Iterator[dict[str, Any]]:
    """A pod with several containers or claims is one entry."""
    held: dict[str, list[tuple[HoldingPod, Holder]]] = {}
    for holder in card.holders:
        for pod in holder.pods if not holder.admin else ():
            held.setdefault(pod.uid, []).append((pod, holder))
    for uid, holds in held.items():
        pod = holds[0][0]
        yield {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": uid,
            "creationTimestamp": pod.created or None,
            "usedGCU": sum(holder.amount for _, holder in holds),
            "phase": pod.phase,
            "containers": _containers(holds),
        }


def _containers(holds: Iterable[tuple[HoldingPod, Holder]]) -> dict[str, dict[str, object]]:
    """What each container has of the card, by its name. Of several instances one is named."""
    found: dict[str, dict[str, object]] = {}
    amounts = Counter[str]()
    for pod, holder in holds:
        for name in pod.containers:
            amounts[name] += holder.amount
            found[name] = dict(_allocated(holder)) | {"request": amounts[name]}
    return found


def _allocated(holder: Holder) -> Iterator[tuple[str, object]]:
    yield "allocated", True
    yield "request", holder.amount
    if instance := holder.instance:
        reported = {
            "profileID": instance.profile_id,
            "profileName": instance.profile,
            "instanceID": instance.id,
            "instanceUUID": instance.uuid,
        }
        yield from (
            (name, str(value)) for name, value in reported.items() if value not in {None, ""}
        )
