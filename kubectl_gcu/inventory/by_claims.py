"""Nodes that serve ResourceClaims: their cards from ResourceSlices, the holders from claims."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from controller.allocator.taints import Taint, TaintRule, untolerated
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE, requested_amount
from dra_driver.model.claims.claim import Object, Result, claim_names, reserved_for, results
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.devices.hidden_device import reveal
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ATTR_MEMORY_MIB,
    ATTR_MODEL,
    ATTR_UUID,
    CAPACITY_SIZE,
    CAPACITY_SLICES,
    DRIVER,
    TAINT_ALLOCATED_BY,
)
from dra_driver.model.pci import PciAddress
from kubectl_gcu.cluster.state import ClusterState
from kubectl_gcu.inventory.views import CardView, Holder, HoldingPod, NodeView, ServedBy

NOT_PUBLISHED: Final = "not published"
"""The problem of a card that a claim holds, and that no agent publishes any more."""

BY_RULE: Final = " by DeviceTaintRule "
"""In the problem of a card that an administrator tainted, before the name of the rule."""

_Cards = dict[PciAddress, CardView]


def nodes_by_claims(state: ClusterState) -> list[NodeView]:
    """Sorted by name. A card that is held and not published any more is there, too."""
    pools = _pools(state.slices, [*filter(None, map(TaintRule.parse, state.rules))])
    pods = {each["metadata"]["uid"]: each for each in state.pods}
    for claim in state.claims:
        for result in results(claim):
            _add_holder(pools[result.pool], claim, result, pods)
    names = {each["spec"]["pool"]["name"]: _node_of(each) for each in state.slices}
    return sorted(
        (
            NodeView(
                names.get(pool, pool.removeprefix(f"{DRIVER}/")),
                ServedBy.CLAIMS,
                tuple(cards[address] for address in sorted(cards)),
            )
            for pool, cards in pools.items()
            if cards
        ),
        key=lambda node: node.name,
    )


def _pools(slices: Iterable[Object], rules: Iterable[TaintRule]) -> defaultdict[str, _Cards]:
    """By pool the cards of its newest generation."""
    pools: defaultdict[str, _Cards] = defaultdict(dict)
    generations: defaultdict[str, int] = defaultdict(int)
    for spec in sorted((each["spec"] for each in slices), key=_generation):
        pool = spec["pool"]
        if pool["generation"] > generations[pool["name"]]:
            generations[pool["name"]] = pool["generation"]
            pools[pool["name"]] = {}
        hidden = not spec.get("nodeName")
        for device in spec.get("devices") or ():
            taints = [rule.taint for rule in rules if rule.selects(pool["name"], device["name"])]
            _add_device(pools[pool["name"]], reveal(device) if hidden else device, taints)
    return pools


def _generation(spec: Mapping[str, Any]) -> int:
    return int(spec["pool"]["generation"])


def _node_of(resource_slice: Object) -> str:
    """A hidden slice names its node as its owner."""
    owners = resource_slice["metadata"].get("ownerReferences") or ()
    owner = next((str(it["name"]) for it in owners if it["kind"] == "Node"), "")
    spec = resource_slice["spec"]
    return str(spec.get("nodeName") or owner or spec["pool"]["name"])


def _add_device(cards: _Cards, device: Mapping[str, Any], by_rules: Iterable[Taint]) -> None:
    try:
        _, address = parse_device_name(device["name"])
    except InvalidValue:
        return  # of somebody else who publishes as this driver; the controller reports it
    card = cards.get(address, CardView(address))
    attributes = device.get("attributes") or {}
    capacity = {name: each["value"] for name, each in (device.get("capacity") or {}).items()}
    problems = {
        _problem(each["key"], each.get("value", ""))
        for each in device.get("taints") or ()
        if each["key"] != TAINT_ALLOCATED_BY
    }
    problems |= {
        f"{_problem(each.key, each.value)}{BY_RULE}{each.rule}"
        for each in untolerated(by_rules, ())
    }
    cards[address] = replace(
        card,
        model=_text(attributes, ATTR_MODEL) or card.model,
        uuid=_text(attributes, ATTR_UUID) or card.uuid,
        memory_mib=attributes.get(ATTR_MEMORY_MIB, {}).get("int", card.memory_mib),
        slices=int(capacity.get(CAPACITY_SLICES, card.slices)),
        size=int(capacity.get(CAPACITY_SIZE, card.size)),
        problems=tuple(sorted({*card.problems, *problems})),
    )


def _problem(key: str, value: str) -> str:
    return key.rpartition("/")[2] + (f": {value}" if value else "")


def _text(attributes: Mapping[str, Any], name: str) -> str:
    return str(attributes.get(name, {}).get("string", ""))


def _add_holder(cards: _Cards, claim: Object, result: Result, pods: Mapping[str, Object]) -> None:
    try:
        mode, address = parse_device_name(result.device)
    except InvalidValue:
        return
    card = cards.get(address, CardView(address, problems=(NOT_PUBLISHED,)))
    data = _prepared(claim, result)
    holder = Holder(
        mode=mode,
        amount=_amount(mode, result),
        claim=f"{claim['metadata']['namespace']}/{claim['metadata']['name']}",
        pods=tuple(_users(claim, pods)),
        profile=str(data.get("profile", "")),
        admin=result.admin_access,
    )
    cards[address] = replace(
        card,
        index=data.get("index", card.index),
        minor=data.get("minor", card.minor),
        mode=card.mode if holder.admin else mode,
        holders=(*card.holders, holder),
    )


def _amount(mode: Mode, result: Result) -> int:
    quantity = result.consumed.get(CAPACITY_OF_MODE.get(mode, ""), "1")
    try:
        return requested_amount(quantity)
    except InvalidValue:
        return 1


def _prepared(claim: Object, result: Result) -> Mapping[str, Any]:
    """What the node's agent wrote about the device; empty until the claim is prepared."""
    for device in claim["status"].get("devices") or ():
        key = device["driver"], device["pool"], device["device"], device.get("shareID")
        if key == (DRIVER, result.pool, result.device, result.share_id):
            data: Mapping[str, Any] = device.get("data") or {}
            return data
    return {}


def _users(claim: Object, pods: Mapping[str, Object]) -> Iterator[HoldingPod]:
    """The pods that reserved the claim. A pod that the user may not read has no more than its
    name."""
    metadata = claim["metadata"]
    for entry in reserved_for(claim):
        pod = pods.get(entry["uid"])
        if pod is None:
            yield HoldingPod(metadata["namespace"], entry["name"], entry["uid"])
        else:
            yield holding_pod(pod, _containers(pod, metadata["name"]))


def holding_pod(pod: Object, containers: Iterable[str]) -> HoldingPod:
    metadata = pod["metadata"]
    return HoldingPod(
        metadata["namespace"],
        metadata["name"],
        metadata["uid"],
        tuple(containers),
        str((pod.get("status") or {}).get("phase", "")),
        str(metadata.get("creationTimestamp", "")),
    )


def _containers(pod: Object, claim: str) -> Iterator[str]:
    """Those that use the claim, by themselves or by limits that kube-scheduler serves."""
    named = {name for name, made in claim_names(pod).items() if made == claim}
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    if extended.get("resourceClaimName") == claim:
        for each in extended.get("requestMappings") or ():
            yield str(each["containerName"])
    for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
        used = (container.get("resources") or {}).get("claims") or ()
        if named & {each["name"] for each in used}:
            yield str(container["name"])
