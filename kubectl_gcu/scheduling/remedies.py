"""What helps a pod that no claim's end would help, by what was counted. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from controller.allocator.device_request import DeviceRequest
from controller.allocator.diagnosis import attribute_texts, count_words
from controller.allocator.nodes.node_info import CardDevices
from controller.allocator.nodes.node_set import NodeSet, numbers
from controller.allocator.nodes.signature import Feasibility
from controller.allocator.state import State
from controller.allocator.taints import Taint
from dra_driver.asks.templates import profile_selector
from dra_driver.model.claims.claim import Object, reserved_for
from dra_driver.model.mode import Mode
from dra_driver.model.names import ATTR_PROFILES, ATTR_TYPE, CAPACITY_SIZE, TAINT_UNHEALTHY
from kubectl_gcu.inventory.problem_pages import PAGES as PAGES_BY_TAINT
from kubectl_gcu.scheduling.unmet import unmet_selector

_SIZE: Final = re.compile(r"(?:^|,)([0-9]+)g[.]")
_TAINTED: Final = f"{Feasibility.TAINTED} "
# What only a person, or time, ends; by the words of controller/allocator/diagnosis.py.
PAGES: Final = {
    "unhealthy": PAGES_BY_TAINT[TAINT_UNHEALTHY],
    **{f"{_TAINTED}{key}": page for key, page in PAGES_BY_TAINT.items()},
}


def when_no_claim_is_left(
    state: State, requests: Sequence[DeviceRequest], nodes: NodeSet
) -> tuple[str, tuple[str, ...]]:
    """What helps where the `state`, which has no claim on the `nodes`, does not serve the requests;
    and the cards that only taints keep from them, if the end of those helps."""
    missing = _missing_profile(state, requests, nodes)
    if remedy := missing or _more_than_a_node_has(state, requests, nodes):
        return remedy, ()
    counts = [count_words(state, each, nodes) for each in requests]
    if not any(words.total() for words in counts):  # nor an alternative that has devices
        for unmet in filter(None, (unmet_selector(state, each, nodes) for each in requests)):
            return (
                "the end of all claims would not help: correct the DeviceClass, or the selector "
                f"{unmet}"
            ), ()
    remedy = _when_all_claims_ended(counts)
    return remedy, _tainted_cards(state, requests, nodes)


def _when_all_claims_ended(counts: Sequence[Counter[str]]) -> str:
    """`counts` has for each request how many cards would be free, too small, unhealthy, …"""
    lacking = [words for words in counts if not words[Feasibility.FREE]] or counts
    if not all(words.total() for words in lacking):
        return (
            "the end of all claims would not help: correct the DeviceClass or the selectors of the "
            "request, which select no device"
        )
    total = sum(lacking, start=Counter[str]())
    broken = {
        word: count
        for word, count in total.items()
        if word == "unhealthy" or word.startswith(_TAINTED)
    }
    text = ", ".join(
        f"{count} {word}{f' ({PAGES[word]})' if word in PAGES else ''}"
        for word, count in sorted(broken.items())
    )
    if not broken:
        return "ask for less: the end of all claims would not help"
    if broken.keys() == total.keys():
        return (
            "neither the end of claims nor a smaller request would help: of the cards that the "
            f"request selects, {text}; the node's administrator can end that"
        )
    return (
        "ask for less, as the end of all claims would not help; or let the node's administrator "
        f"end what keeps cards from being used: {text}"
    )


def _more_than_a_node_has(state: State, requests: Sequence[DeviceRequest], nodes: NodeSet) -> str:
    """What to do where the one request asks for more cards than any of the `nodes` publishes; empty
    if it does not. A device that is shared may serve a request several times."""
    if len(requests) != 1 or not (count := requests[0].count):
        return ""
    most, types = 0, set[str]()
    for node in map(state.fleet.at, numbers(nodes & state.fleet.all_nodes)):
        kinds = [
            card.kinds[index]
            for card in node.cards
            for index in card.signature.fit_of(requests[0], card.devices, state.selectors).selected
        ]
        if len(kinds) >= count or any(kind.multiple for kind in kinds):
            return ""
        most = max(most, len(kinds))
        types |= {kind.text(ATTR_TYPE) for kind in kinds}
    if not most:
        return ""
    noun = "card" if types == {Mode.WHOLE.value} else "device"
    return (
        "ask for less: all devices of a pod come from one node, and the largest has "
        f"{most} {noun}{'s' * (most > 1)} that the request selects"
    )


def _missing_profile(state: State, requests: Iterable[DeviceRequest], nodes: NodeSet) -> str:
    """What helps a limit for an instance of a size that no card on the `nodes` has; empty if there
    is none such, or no card that can be divided."""
    offered = sorted(attribute_texts(state, nodes, ATTR_PROFILES))
    sizes = {match[1] for text in offered for match in _SIZE.finditer(text)}
    for asked in requests if offered else ():
        size = asked.texts.get(CAPACITY_SIZE, "")
        if size not in sizes and profile_selector(size) in asked.selectors:
            return f"no profile has size {size}; the card's profiles are {' or '.join(offered)}"
    return ""


def _tainted_cards(
    state: State, requests: Iterable[DeviceRequest], nodes: NodeSet
) -> tuple[str, ...]:
    """Each card on the `nodes` with a device that a request selects and whose taints it does not
    tolerate, with these."""
    texts = (
        f"node {node.name}, {_name(card)}: {', '.join(map(_taint, taints))}"
        for asked in requests
        for node in map(state.fleet.at, numbers(nodes & state.fleet.all_nodes))
        for card in node.cards
        if (taints := _taints(state, asked, card))
    )
    return tuple(dict.fromkeys(texts))


def _taints(state: State, asked: DeviceRequest, card: CardDevices) -> Collection[Taint]:
    fit = card.signature.fit_of(asked, card.devices, state.selectors)
    taints: dict[Taint, None] = {}
    for index in fit.selected:
        capacity_fit = asked.capacity_fit(card.kinds[index])
        if capacity_fit and card.signature.feasibility(asked, index) is Feasibility.TAINTED:
            taints |= dict.fromkeys(capacity_fit.taints)
    return taints


def _name(card: CardDevices) -> str:
    device = card.devices[0]
    return f"card {device.card[1]}" if device.card else f"device {device.id.name}"


def _taint(taint: Taint) -> str:
    """As kubectl writes taints of nodes."""
    value = f"={taint.value}" if taint.value else ""
    rule = f" by DeviceTaintRule {taint.rule}" if taint.rule else ""
    return f"{taint.key}{value}:{taint.effect}{rule}"


def without_node_constraints(pod: Object) -> tuple[Object, str]:
    """The pod without what its author wrote about nodes, and in words what that was; empty if it
    was nothing."""
    spec = dict(pod["spec"])
    affinity = spec.get("affinity") or {}
    said = []
    if spec.pop("nodeSelector", None):
        said.append("nodeSelector")
    if affinity.get("nodeAffinity"):
        said.append("node affinity")
        spec["affinity"] = {key: affinity[key] for key in affinity if key != "nodeAffinity"}
    return pod | {"spec": spec}, " and ".join(said)


def users_of_several(claims: Sequence[Object]) -> Iterator[tuple[tuple[str, str], list[Object]]]:
    """The pods that have several of the claims, by namespace and name."""
    by_pod: defaultdict[tuple[str, str], list[Object]] = defaultdict(list)
    for claim in claims:
        for user in reserved_for(claim):
            by_pod[claim["metadata"]["namespace"], str(user["name"])].append(claim)
    return ((pod, several) for pod, several in sorted(by_pod.items()) if len(several) > 1)
