"""What a bound pod carries: our hint, and what tools of the vendor's gcushare read. Pure.

Formats are the vendor's (gcushare-scheduler-extender, gcushare-device-plugin). Nothing reads them
back but the hint, and that only until the node's agent tells.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from controller.cache.keys import uid_of
from controller.extender.held import BoundPod
from controller.extender.limit_request import LimitRequest, asked_of
from dra_driver.model.claim import Object
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED
from dra_driver.model.node_cards import Hold, NodeCard

ASSIGNED_MINOR: Final = "enflame.com/gcu-assigned-minor"
ASSIGNED_INDEX: Final = "enflame.com/gcu-assigned-index"
REQUEST_SIZE: Final = "enflame.com/gcu-request-size"
ASSIGNED: Final = "enflame.com/gcu-assigned"
ASSIGNED_CONTAINERS: Final = "assigned-containers"
ASSIGNED_TIME: Final = "enflame.com/gcu-assigned-time"


def describe(tenant: BoundPod, cards: Sequence[NodeCard], now_ns: int) -> Mapping[str, str]:
    """For a pod placed on some of `cards`, those of its node, at `now_ns` (Unix, nanoseconds).

    The vendor's own describe one card, and are left out for whole cards, which its gcushare does
    not serve.
    """
    ours = {ANNOTATION_ASSIGNED: ",".join(map(str, tenant.cards))}
    card = next((each for each in cards if each.address in tenant.cards), None)
    if tenant.asked.mode is Mode.WHOLE or card is None:
        return ours
    return {
        **ours,
        ASSIGNED_MINOR: str(card.minor),
        ASSIGNED_INDEX: str(card.index),
        REQUEST_SIZE: str(tenant.asked.total),
        ASSIGNED: "false",  # until the agent has told whose the devices are: see `assigned`
        ASSIGNED_CONTAINERS: _json(
            {name: {"allocated": False, "request": size} for name, size in tenant.asked.containers}
        ),
        ASSIGNED_TIME: str(now_ns),
    }


def assigned(pod: Object, cards: Sequence[NodeCard]) -> Mapping[str, str]:
    """For a pod on the node of `cards`, what it really has; nothing before the node's agent has
    told of all its containers, nor for whole cards."""
    asked = _asked(pod)
    if asked is None or asked.mode is Mode.WHOLE:
        return {}
    told = {
        hold.container: (card, hold)
        for card in cards
        for hold in card.held
        if hold.pod == uid_of(pod)
    }
    names = [name for name, _ in asked.containers]
    # An init container's devices, which it hands on, are told of once: they may be told as its own.
    handed_on = next((told[name] for name in sorted(told.keys() - set(names))), None)
    found = {name: each for name in names if (each := told.get(name, handed_on))}
    if len(found) < len(names):
        return {}
    card, _ = found[names[0]]
    if not card.is_numbered:
        return {}  # the card is gone, and what the pod says of it is how it was
    return {
        ASSIGNED_MINOR: str(card.minor),
        ASSIGNED_INDEX: str(card.index),
        REQUEST_SIZE: str(asked.total),
        ASSIGNED: "true",
        ASSIGNED_CONTAINERS: _json(
            {name: dict(_allocated(found[name][1], size)) for name, size in asked.containers}
        ),
    }


def _allocated(hold: Hold, size: int) -> Iterator[tuple[str, object]]:
    yield "allocated", True
    yield "request", size
    if hold.instance:
        yield "profileID", str(hold.instance.profile_id)
        yield "profileName", hold.instance.profile
        yield "instanceID", str(hold.instance.id)
        yield "instanceUUID", hold.instance.uuid


def _asked(pod: Object) -> LimitRequest | None:
    try:
        return asked_of(pod)
    except Refused:  # bound by hand, and refused by its node
        return None


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
