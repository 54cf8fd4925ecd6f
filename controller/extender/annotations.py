"""What a bound pod carries: our hint, and what tools of the vendor's gcushare read. Pure.

Formats are the vendor's (gcushare-scheduler-extender, gcushare-device-plugin). Nothing reads them
back but the hint, and that only until the node's agent tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from controller.extender.held import Tenant
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED
from dra_driver.model.node_cards import NodeCard

ASSIGNED_MINOR: Final = "enflame.com/gcu-assigned-minor"
ASSIGNED_INDEX: Final = "enflame.com/gcu-assigned-index"
REQUEST_SIZE: Final = "enflame.com/gcu-request-size"
ASSIGNED: Final = "enflame.com/gcu-assigned"
ASSIGNED_TIME: Final = "enflame.com/gcu-assigned-time"


def describe(tenant: Tenant, cards: Sequence[NodeCard], now_ns: int) -> Mapping[str, str]:
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
        ASSIGNED: "false",  # the agent makes it true, when the kubelet has recorded the devices
        ASSIGNED_TIME: str(now_ns),
    }
