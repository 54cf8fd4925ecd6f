"""Turns a new pod's limits by memory and compute into slices or a size, which the kubelet counts
where there is no DRA (ADR 30). Pure.

What cannot be translated on any card is left in the pod, and a ValidatingAdmissionPolicy refuses it
with the reason (policy-measured-limits.yaml).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from controller.webhook.limits import resources_without
from controller.webhook.review import Operation
from dra_driver.asks.limits import MEASURES, Container, read_ask
from dra_driver.config.device_config import ISOLATION
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.measures import Measures
from dra_driver.model.devices.node_cards import CardKind
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ANNOTATION_ASKED,
    ANNOTATION_ISOLATION,
    RESOURCE_CORE,
    RESOURCE_MEMORY,
    RESOURCE_WHOLE,
)

CardKinds = Callable[[Mapping[str, str]], Collection[CardKind]]
"""The kinds of cards of the nodes that have these labels. Raises Refused while they are unknown."""

_PARTS: Final = {Mode.SHARED: "shared slices", Mode.DRS: "DRS instances"}


def count_limits(pod: Object, card_kinds: CardKinds) -> list[Operation]:
    """The patch for a new pod; nothing for a pod without such limits.

    Raises Refused where no card has such a part, or where one that has less could be taken.
    """
    try:
        ask = read_ask(pod)
    except Refused:
        return []
    if ask is None or not ask.is_measured:
        return []
    mode, selector = ISOLATION[ask.isolation], pod["spec"].get("nodeSelector") or {}
    kinds = _offered(card_kinds(selector), mode, selector)
    return [
        *(
            _resources(pod, container, RESOURCES[mode], _number(container, mode, kinds))
            for container in ask.containers
        ),
        _annotations(pod, ask.containers),
    ]


def _offered(
    kinds: Collection[CardKind], mode: Mode, selector: Mapping[str, str]
) -> Sequence[CardKind]:
    where = f"no node with the labels {_text(selector)}" if selector else "no node"
    if not kinds:
        raise Refused(
            f"{where} has reported GCUs, so {RESOURCE_MEMORY} and {RESOURCE_CORE} cannot be turned "
            "into a part of a card",
            remedy="create the pod again once the nodes' agents run, or change its nodeSelector",
        )
    offered = [each for each in kinds if each.shares(mode)]
    if not offered:
        raise Refused(
            f"{where} offers {_PARTS[mode]}",
            remedy=f"change the annotation {ANNOTATION_ISOLATION}, the pod's nodeSelector, or the "
            "modes of the cards",
        )
    return sorted(offered, key=lambda each: each.describe(mode))


def _number(container: Container, mode: Mode, kinds: Sequence[CardKind]) -> int:
    """The slices or the size with which the container has no less than it asks for, on whichever
    card it will be."""
    measures = Measures(
        container.amounts.get(RESOURCE_MEMORY), container.amounts.get(RESOURCE_CORE)
    )
    covering = [measures.covering(kind.shares(mode)) for kind in kinds]
    numbers = [each for each in covering if each is not None]
    title = f"container {container.name} asks for {_amounts(container.amounts)}"
    if not numbers:
        raise Refused(
            f"{title}, which is more than any card has as {_PARTS[mode]}: "
            f"{'; '.join(each.describe(mode) for each in kinds)}",
            remedy=f"ask for less, or for a whole card by {RESOURCE_WHOLE}",
        )
    number = max(numbers)
    lacking = [
        kind.describe(mode)
        for kind in kinds
        for share in kind.shares(mode)
        if share.units == number and measures.missing(share)
    ]
    if lacking:
        raise Refused(
            f"{title}, for which {RESOURCES[mode]}: {number} is needed, and that is less on "
            f"{'; '.join(lacking)}",
            remedy="select nodes with cards of another model by the pod's nodeSelector",
        )
    return number


def _resources(pod: Object, container: Container, resource: str, number: int) -> Operation:
    resources = resources_without(pod, container, MEASURES)
    for field in {"limits", "requests"} & resources.keys():
        resources[field][resource] = str(number)
    return {"op": "replace", "path": f"{container.path}/resources", "value": resources}


def _annotations(pod: Object, asking: Sequence[Container]) -> Operation:
    """What was asked for, for people who read the pod."""
    asked = {each.name: {name: str(n) for name, n in each.amounts.items()} for each in asking}
    text = json.dumps(asked, separators=(",", ":"), sort_keys=True)
    annotations = {**(pod["metadata"].get("annotations") or {}), ANNOTATION_ASKED: text}
    return {"op": "add", "path": "/metadata/annotations", "value": annotations}


def _text(labels: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _amounts(amounts: Mapping[str, int]) -> str:
    return " and ".join(f"{name}: {amount}" for name, amount in sorted(amounts.items()))
