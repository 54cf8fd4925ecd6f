"""Annotations of a bound pod: its assigned cards, and those that tools of the vendor's gcushare
read. Pure.

Formats are the vendor's (gcushare-scheduler-extender, gcushare-device-plugin). The extender reads
back the assigned cards only, and only until the node's agent has reported the pod's devices.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from controller.cache.keys import uid_of
from controller.extender.limit_request import LimitRequest, parse_limits
from controller.extender.node_allocations import BoundPod
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold, NodeCard
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED

ASSIGNED_MINOR: Final = "enflame.com/gcu-assigned-minor"
ASSIGNED_INDEX: Final = "enflame.com/gcu-assigned-index"
REQUEST_SIZE: Final = "enflame.com/gcu-request-size"
ASSIGNED: Final = "enflame.com/gcu-assigned"
ASSIGNED_CONTAINERS: Final = "assigned-containers"
ASSIGNED_TIME: Final = "enflame.com/gcu-assigned-time"


def describe(bound_pod: BoundPod, cards: Sequence[NodeCard], now_ns: int) -> Mapping[str, str]:
    """For a pod placed on some of `cards`, those of its node, at `now_ns` (Unix, nanoseconds).

    The vendor's own describe one card, and are left out for whole cards, which its gcushare does
    not serve.
    """
    ours = {ANNOTATION_ASSIGNED: ",".join(map(str, bound_pod.cards))}
    card = next((card for card in cards if card.address in bound_pod.cards), None)
    if bound_pod.request.mode is Mode.WHOLE or card is None:
        return ours
    return {
        **ours,
        ASSIGNED_MINOR: str(card.minor),
        ASSIGNED_INDEX: str(card.index),
        REQUEST_SIZE: str(bound_pod.request.total),
        ASSIGNED: "false",  # until the agent has reported them: see `assigned`
        ASSIGNED_CONTAINERS: _json(
            {
                name: {"allocated": False, "request": size}
                for name, size in bound_pod.request.containers
            }
        ),
        ASSIGNED_TIME: str(now_ns),
    }


def assigned(pod: Object, cards: Sequence[NodeCard]) -> Mapping[str, str]:
    """For a pod on the node of `cards`, what it really has. Nothing before the node's agent has
    reported all its containers, nor for whole cards."""
    request = _limit_request(pod)
    if request is None or request.mode is Mode.WHOLE:
        return {}
    reported = {
        hold.container: (card, hold)
        for card in cards
        for hold in card.held
        if hold.pod == uid_of(pod)
    }
    names = [name for name, _ in request.containers]
    # Devices that an init container hands on are reported once, perhaps as the init container's.
    handed_on = next((reported[name] for name in sorted(reported.keys() - set(names))), None)
    holds = {name: held for name in names if (held := reported.get(name, handed_on))}
    if len(holds) < len(names):
        return {}
    card, _ = holds[names[0]]
    if not card.is_numbered:
        return {}  # the card is gone, and what the pod says of it is how it was
    return {
        ASSIGNED_MINOR: str(card.minor),
        ASSIGNED_INDEX: str(card.index),
        REQUEST_SIZE: str(request.total),
        ASSIGNED: "true",
        ASSIGNED_CONTAINERS: _json(
            {name: dict(_allocated(holds[name][1], size)) for name, size in request.containers}
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


def _limit_request(pod: Object) -> LimitRequest | None:
    try:
        return parse_limits(pod)
    except Refused:  # bound by hand, and refused by its node
        return None


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
