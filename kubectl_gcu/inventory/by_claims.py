"""Nodes that serve ResourceClaims: their cards from ResourceSlices, the holders from claims."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from controller.allocator.device import Device, DeviceKind
from controller.allocator.inventory import Inventory
from controller.allocator.taints import Taint, untolerated
from controller.cache.keys import full_name
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE, requested_amount
from dra_driver.model.claims.claim import Object, Result, claim_names, reserved_for, results
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ATTR_MEMORY_MIB,
    ATTR_MODEL,
    ATTR_TYPE,
    ATTR_UUID,
    CAPACITY_SIZE,
    CAPACITY_SLICES,
    DRIVER,
    TAINTS_OF_CLAIMS,
)
from dra_driver.model.pci import PciAddress
from kubectl_gcu.cluster.pod_status import ended_containers
from kubectl_gcu.inventory.views import (
    CardView,
    Holder,
    HolderInstance,
    HoldingPod,
    NodeView,
    ServedBy,
)

NOT_PUBLISHED: Final = "not published"
"""The problem of a card that a claim holds, and that no agent publishes any more."""

BY_RULE: Final = " by DeviceTaintRule "
"""In the problem of a card that an administrator tainted, before the name of the rule."""

_Cards = dict[PciAddress, CardView]


def nodes_by_claims(
    inventory: Inventory,
    claims: Iterable[Object],
    pods: Iterable[Object],
    *,
    sees_slices: bool = True,
) -> list[NodeView]:
    """Sorted by name. A card that is held and not published any more is there, too. With
    `sees_slices` False the user may not read slices, and only held cards are there."""
    held: defaultdict[str, list[Object]] = defaultdict(list)
    for claim in claims:
        for pool in pools_of(claim):
            held[pool].append(claim)
    known = {each["metadata"]["uid"]: each for each in pods}
    views = [
        node_of_pool(inventory, pool, held.get(pool, ()), known, sees_slices=sees_slices)
        for pool in dict.fromkeys((*inventory.pools, *held))
    ]
    return sorted((view for view in views if view.cards), key=lambda node: node.name)


def pools_of(claim: Object) -> frozenset[str]:
    """The pools whose devices the claim has."""
    return frozenset(result.pool for result in results(claim))


def node_of_pool(
    inventory: Inventory,
    pool: str,
    claims: Collection[Object],
    pods: Mapping[str, Object],
    *,
    sees_slices: bool = True,
) -> NodeView:
    """The node of the pool, without cards if it has none. `claims` are those with devices of the
    pool; `pods` are by their UIDs. `sees_slices` is as of `nodes_by_claims`."""
    published = inventory.pools.get(pool)
    cards = _published(published.devices) if published else {}
    lost = (NOT_PUBLISHED,) if sees_slices else ()
    for claim in sorted(claims, key=full_name):  # as the API server lists them
        for result in results(claim):
            if result.pool == pool:
                _add_holder(cards, claim, result, pods, lost)
    return NodeView(
        inventory.node_of(pool) or pool.removeprefix(f"{DRIVER}/"),
        ServedBy.CLAIMS,
        tuple(cards[address] for address in sorted(cards)),
    )


def _published(devices: Iterable[Device]) -> _Cards:
    """The cards of a pool's devices."""
    by_card: defaultdict[PciAddress, list[Device]] = defaultdict(list)
    for device in devices:
        with suppress(InvalidValue):  # of somebody else, which the controller reports
            by_card[parse_device_name(device.id.name)[1]].append(device)
    cards: _Cards = {}
    for address, its in by_card.items():
        card = _card(address, tuple([device.kind for device in its]))
        cards[address] = replace(card, uuid=_text(its, ATTR_UUID))
    return cards


# Most nodes of a cluster have cards of the same kinds at the same addresses.
@lru_cache(4096)
def _card(address: PciAddress, kinds: tuple[DeviceKind, ...]) -> CardView:
    """The card with devices of these kinds. Its UUID is none of what a kind has."""
    capacity = {name: each.total.units for kind in kinds for name, each in kind.capacity.items()}
    problems = {
        _problem(taint)
        for kind in kinds
        for taint in kind.taints
        if (untolerated([taint], ()) if taint.rule else taint.key not in TAINTS_OF_CLAIMS)
    }
    memory = _text(kinds, ATTR_MEMORY_MIB)
    sizes = {
        each.units
        for kind in kinds
        if CAPACITY_SIZE in kind.capacity
        for each in kind.capacity[CAPACITY_SIZE].values
    }
    return CardView(
        address,
        model=_text(kinds, ATTR_MODEL),
        memory_mib=int(memory) if memory.isdecimal() else None,
        slices=capacity.get(CAPACITY_SLICES, 0),
        size=capacity.get(CAPACITY_SIZE, 0),
        problems=tuple(sorted(problems)),
        whole=any(kind.text(ATTR_TYPE) == Mode.WHOLE.value for kind in kinds),
        sizes=tuple(sorted(sizes)),
    )


def _problem(taint: Taint) -> str:
    value = f": {taint.value}" if taint.value else ""
    rule = f"{BY_RULE}{taint.rule}" if taint.rule else ""
    return f"{taint.key.rpartition('/')[2]}{value}{rule}"


def _text(devices: Iterable[Device | DeviceKind], name: str) -> str:
    """The first value of that attribute; empty if no device has one."""
    values = (device.attribute(name) for device in devices)
    return next((str(value) for each in values if each for value in each.values), "")


def _add_holder(
    cards: _Cards,
    claim: Object,
    result: Result,
    pods: Mapping[str, Object],
    lost: tuple[str, ...],
) -> None:
    """`lost` are the problems of a card that is not among the `cards` yet."""
    try:
        mode, address = parse_device_name(result.device)
    except InvalidValue:
        return
    card = cards.get(address) or CardView(address, problems=lost, whole=False)
    data = _prepared(claim, result)
    holder = Holder(
        mode=mode,
        amount=_amount(mode, result),
        claim=full_name(claim),
        pods=tuple(_users(claim, result, pods)),
        instance=_instance(data, result.request),
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


def _instance(data: Mapping[str, Any], request: str) -> HolderInstance | None:
    """The instance of one request. Before Kubernetes 1.36 requests that have shares of one card
    are in one entry."""
    shares = data.get("shares") or (data,)
    share = next((each for each in shares if each.get("request", request) == request), data)
    if "profile" not in share:
        return None
    return HolderInstance(
        share["profile"],
        share.get("instanceID"),
        share.get("profileID"),
        share.get("instanceUUID", ""),
    )


def _users(claim: Object, result: Result, pods: Mapping[str, Object]) -> Iterator[HoldingPod]:
    """The pods that reserved the claim. A pod that the user may not read has no more than its
    name."""
    metadata = claim["metadata"]
    for entry in reserved_for(claim):
        pod = pods.get(entry["uid"])
        if pod is None:
            yield HoldingPod(metadata["namespace"], entry["name"], entry["uid"])
        else:
            yield holding_pod(pod, _containers(pod, metadata["name"], result.main_request))


def holding_pod(pod: Object, containers: Iterable[str]) -> HoldingPod:
    metadata, names = pod["metadata"], tuple(containers)
    ended = set(ended_containers(pod))
    return HoldingPod(
        metadata["namespace"],
        metadata["name"],
        metadata["uid"],
        names,
        str((pod.get("status") or {}).get("phase", "")),
        str(metadata.get("creationTimestamp", "")),
        tuple(name for name in names if name in ended),
    )


def _containers(pod: Object, claim: str, request: str) -> Iterator[str]:
    """Those that use the request of the claim, by themselves or by limits that kube-scheduler
    serves."""
    named = {name for name, made in claim_names(pod).items() if made == claim}
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    if extended.get("resourceClaimName") == claim:
        for each in extended.get("requestMappings") or ():
            if each["requestName"] == request:
                yield str(each["containerName"])
    for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
        used = (container.get("resources") or {}).get("claims") or ()
        # One that names no request uses all of the claim.
        if any(each["name"] in named and each.get("request", request) == request for each in used):
            yield str(container["name"])
