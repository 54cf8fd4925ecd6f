"""What is allocated of a node's cards: by its agent's report, and by pods that the report does not
have yet. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.allocator.allocated_devices import DeviceAllocation
from controller.allocator.capacity import NANO
from controller.allocator.device import DeviceId
from controller.cache import pods
from controller.cache.keys import uid_of
from controller.extender.limit_request import LimitRequest, parse_limits
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import device_name
from dra_driver.model.devices.node_cards import NodeCard
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED, CAPACITY_SIZE, CAPACITY_SLICES, pool_name
from dra_driver.model.pci import PciAddress

_Reported = defaultdict[str, Counter[PciAddress]]  # by UID: how much of which cards
_Unowned = Counter[tuple[PciAddress, Mode, int]]  # containers that hold so much, whosever they are
_CAPACITIES = {Mode.SHARED: CAPACITY_SLICES, Mode.DRS: CAPACITY_SIZE}
# On the mirror of a static pod, the UID that the kubelet gave it: MD5 of the manifest (1.36.3,
# pkg/kubelet/pod/mirror_client.go and pkg/kubelet/config/common.go). Who may create pods can set
# it, to any value: the API server only asks that such a pod names a node from the start, and then
# keeps the value (pkg/apis/core/validation). Whatever it is, no kubelet runs a pod that has it
# (pkg/kubelet/types, `IsMirrorPod`).
_MIRROR: Final = "kubernetes.io/config.mirror"
_STATIC_UID: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod that is bound to `node`, or is being bound to it. `name` is ``namespace/name``;
    `cards` are those that the extender chose, none where the pod was bound past it.

    `kubelet_uid` is the UID by which the kubelet, and so the agent, knows the pod; empty if none
    does. No kubelet runs a pod that `is_mirror`: it runs the static pod. `workload` is the UID of
    what made the pod; None if somebody made it by hand.
    """

    uid: str
    name: str
    node: str
    request: LimitRequest
    cards: tuple[PciAddress, ...]
    kubelet_uid: str
    is_mirror: bool = False
    workload: str | None = None

    @classmethod
    def parse(cls, pod: Object) -> BoundPod | None:
        """None if the pod requests nothing that a node could give it."""
        try:
            request = parse_limits(pod)
        except Refused:
            return None  # bound by hand; what it got nevertheless is in the agent's report
        if request is None:
            return None
        metadata = pod["metadata"]
        text = (metadata.get("annotations") or {}).get(ANNOTATION_ASSIGNED, "")
        return cls(
            uid=uid_of(pod),
            name=f"{metadata['namespace']}/{metadata['name']}",
            node=pods.node_name(pod),
            request=request,
            cards=tuple(_addresses(text.split(","))) if text else (),
            kubelet_uid=kubelet_uid(pod),
            is_mirror=_mirrored(pod) is not None,
            workload=pods.workload(pod),
        )


def holds_on(
    node: str, cards: Sequence[NodeCard], bound: Iterable[BoundPod], ended: Collection[str]
) -> tuple[list[DeviceAllocation], list[str]]:
    """All that is held on the node, and the names of pods that hold something of unknown cards.
    `ended` are UIDs of pods that hold nothing any more."""
    holds = [hold for card in cards for hold in _reported_allocations(node, card, ended)]
    reported, unowned = _owners(cards, ended)
    taken = {card.address for card in cards if card.mode is Mode.WHOLE}
    free_amounts = {
        (card.address, mode): _free_amount(card, mode, ended) for card in cards for mode in Mode
    }
    unknown = []
    for bound_pod in bound:
        if bound_pod.is_mirror:
            continue  # the static pod's devices are reported; anyone can make a mirror pod of none
        its = reported[bound_pod.uid]
        rest = _rest(bound_pod, its, unowned)
        missing = _unreported(node, bound_pod, rest, its, taken=taken, free_amounts=free_amounts)
        if missing is None:
            unknown.append(bound_pod.name)
        else:
            holds += missing
    return holds, sorted(unknown)


def _reported_allocations(
    node: str, card: NodeCard, ended: Collection[str]
) -> Iterator[DeviceAllocation]:
    if card.mode is None:
        return
    # The mode outlives its holders: the agent has to destroy an instance, or to leave the mode.
    yield _hold(node, card.address, card.mode, 0)
    if card.mode is not Mode.WHOLE:
        for held in card.held:
            if held.pod not in ended:
                yield _hold(node, card.address, card.mode, held.amount)


def _owners(cards: Iterable[NodeCard], ended: Collection[str]) -> tuple[_Reported, _Unowned]:
    reported: _Reported = defaultdict(Counter)
    unowned: _Unowned = Counter()
    for card in cards:
        for held in card.held:
            if not held.pod and card.mode:
                unowned[card.address, card.mode, held.amount] += 1
            elif held.pod not in ended:
                reported[held.pod][card.address] += held.amount
    return reported, unowned


def _rest(bound_pod: BoundPod, reported: Mapping[PciAddress, int], unowned: _Unowned) -> int:
    """How much of the pod's request is not reported.

    A reported amount without a pod is taken for this pod's if it is on one of the pod's cards, and
    as much as one of its containers requests; it is then removed from `unowned`. The amount counts
    in any case, so a wrong guess only confuses two pods that were placed on the same card.
    """
    request = bound_pod.request
    amount = request.total - sum(reported.values())
    if reported:
        return amount
    sizes = [size for _, size in request.containers]
    if request.mode is Mode.WHOLE:
        # Cards are reported one by one. A pod that was bound by hand may request any number.
        sizes = [1 for card in bound_pod.cards if unowned[card, request.mode, 1]][: sum(sizes)]
    for size in sizes:
        for card in bound_pod.cards:
            if unowned[card, request.mode, size]:
                unowned[card, request.mode, size] -= 1
                amount -= size
                break
    return amount


def _unreported(
    node: str,
    bound_pod: BoundPod,
    amount: int,
    reported: Mapping[PciAddress, int],
    *,
    taken: Collection[PciAddress],
    free_amounts: Mapping[tuple[PciAddress, Mode], int],
) -> list[DeviceAllocation] | None:
    """Where the rest is, in the order in which the agent chooses: on a card that is reported for
    the pod, if it has room, else where the extender placed the pod; None where that is unknown.
    `taken` are the whole cards that the agent reports as used."""
    if amount <= 0:
        return []
    mode = bound_pod.request.mode
    if mode is Mode.WHOLE:
        others = [card for card in bound_pod.cards if card not in taken][:amount]
        return [_hold(node, card, mode, 1) for card in others] if len(others) == amount else None
    places = (*reported, *bound_pod.cards)
    with_room = (card for card in places if free_amounts.get((card, mode), 0) >= amount)
    return [_hold(node, next(with_room, places[0]), mode, amount)] if places else None


def _free_amount(card: NodeCard, mode: Mode, ended: Collection[str]) -> int:
    """How much of the card is free by its agent's report, if it is in that mode."""
    if card.mode not in {None, mode}:
        return 0
    held = sum(hold.amount for hold in card.held if hold.pod not in ended)
    return (card.slices if mode is Mode.SHARED else card.total) - held


def _hold(node: str, card: PciAddress, mode: Mode, amount: int) -> DeviceAllocation:
    device = DeviceId(pool_name(node), device_name(mode, card))
    if mode is Mode.WHOLE:
        return DeviceAllocation(device, None)
    return DeviceAllocation(device, {_CAPACITIES[mode]: amount * NANO} if amount else {})


def kubelet_uid(pod: Object) -> str:
    """The UID by which the kubelet knows the pod; empty if none does: anybody may create a mirror
    pod that names no pod which a kubelet could run."""
    mirrored = _mirrored(pod)
    if mirrored is None:
        return uid_of(pod)
    return mirrored if _STATIC_UID.fullmatch(mirrored) else ""


def _mirrored(pod: Object) -> str | None:
    """What the mirror pod says of its static pod; None if it is no mirror pod."""
    text = (pod["metadata"].get("annotations") or {}).get(_MIRROR)
    return None if text is None else str(text)


def _addresses(texts: Iterable[str]) -> Iterator[PciAddress]:
    for text in texts:
        try:
            yield PciAddress.parse(text)
        except InvalidValue:  # not written by the extender: the cards are unknown
            return
