"""Pods that have cards past the driver, or were placed past its scheduler extender."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from controller.cache import pods
from controller.cache.card_access import direct_access
from controller.cache.keys import full_name
from dra_driver.asks.limits import COUNTED, limit_names
from dra_driver.model.names import ANNOTATION_ASSIGNED, ENV_VISIBLE_DEVICES
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.inventory.views import CardView, HoldingPod, NodeView, ServedBy
from kubectl_gcu.words import first_of

CARDS_WITHOUT_CLAIM: Final = Check(
    "cards-without-claim",
    "a pod without a claim has cards: by the variable `ENFLAME_VISIBLE_DEVICES` of any container, "
    "by a hostPath `/dev/gcu…` or by the RuntimeClass of the agents. Not found: variables of "
    "images and of `envFrom`",
)
EXTENDER_BYPASSED: Final = Check(
    "extender-bypassed",
    "pods with limits are on nodes without DRA, and the scheduler extender did not place them",
)
CONTAINER_ENDED: Final = Check(
    "container-ended",
    "all containers of a pod that use a card have ended, and the pod runs on and keeps it",
)
_MOST_NAMED: Final = 3
_MINORS: Final = re.compile(rf"{ENV_VISIBLE_DEVICES}=([0-9]{{1,6}}(?:,[0-9]{{1,6}})*)")


def cards_without_claim(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    """On nodes of the inventory. The driver's own agents may."""
    cards = {node.name: node.cards for node in nodes}
    agents = found.pods("agent")
    classes = {str(pod["spec"].get("runtimeClassName") or "") for pod in agents} - {""}
    own = {pod["metadata"]["uid"] for pod in agents}
    for pod in found.state.pods:
        node = pods.node_name(pod)
        if node not in cards or pods.is_done(pod) or pod["metadata"]["uid"] in own:
            continue
        if ways := direct_access(pod, classes):
            known = "; ".join(_named_cards(ways, cards[node]))
            yield CARDS_WITHOUT_CLAIM.finding(
                f"pod {full_name(pod)} on node {node}",
                f"it has cards by {', '.join(ways)}, and no claim: others may have the same cards"
                + (f" ({known})" if known else ""),
                "Give it a claim. vendorRuntime.policy refuses such pods.",
            )


def _named_cards(ways: list[str], cards: Iterable[CardView]) -> Iterator[str]:
    """The cards whose minors the variable lists, as far as these are published, and their
    holders."""
    lists = filter(None, map(_MINORS.fullmatch, ways))
    minors = {int(minor) for found in lists for minor in found[1].split(",")}
    for card in cards:
        if card.minor in minors:
            having = (each for each in card.holders if not each.admin)
            holders = dict.fromkeys(str(pod) for each in having for pod in each.pods)
            held = f", held by {first_of(list(holders), _MOST_NAMED)}" if holders else ""
            yield f"minor {card.minor} = {card.address}{held}"


def container_ended(nodes: list[NodeView]) -> Iterator[Finding]:
    """A claim is the pod's: its card is free when all of the pod has ended."""
    cards: defaultdict[tuple[str, HoldingPod], dict[str, None]] = defaultdict(dict)
    for node in nodes:
        for card in node.cards:
            for holder in card.holders:
                keeps = holder.claim and not holder.admin
                if keeps and all(map(_needs_nothing, holder.pods)):
                    for pod in holder.pods:
                        cards[node.name, pod][str(card.address)] = None
    for (name, pod), held in cards.items():
        yield CONTAINER_ENDED.finding(
            f"pod {pod} on node {name}",
            f"{', '.join(pod.ended)} ended, and the pod keeps {first_of(list(held), _MOST_NAMED)} "
            "while its other containers run",
            "Delete the pod or its Job. A sidecar ends with the other containers if it is an init "
            "container with restartPolicy Always.",
        )


def _needs_nothing(pod: HoldingPod) -> bool:
    return pod.phase == "Running" and bool(pod.ended) and pod.ended == pod.containers


def extender_bypassed(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    """The extender writes which cards it chose when it binds a pod."""
    by_limits = {node.name for node in nodes if node.served_by is ServedBy.LIMITS}
    names = [
        full_name(pod)
        for pod in found.state.pods
        if pods.node_name(pod) in by_limits
        and not pods.is_done(pod)
        and limit_names(pod, COUNTED.__contains__)
        and ANNOTATION_ASSIGNED not in (pod["metadata"].get("annotations") or {})
    ]
    if names:
        yield EXTENDER_BYPASSED.finding(
            "scheduler extender",
            f"it did not place {first_of(sorted(names), _MOST_NAMED, 'others')}, so their node may "
            "have refused, or may refuse, them or others",
            "Let the kube-scheduler of these pods call the extender: "
            "docs/user/scheduler-extender.md.",
        )
