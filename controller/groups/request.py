"""What is to be placed together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from controller.allocator.claim_request import ClaimRequest
from controller.allocator.nodes.node_set import NodeSet
from controller.cache.keys import uid_of
from controller.cache.pod_groups import PodGroup
from controller.cache.pods import key_of
from controller.placer.pod_claims import PodClaims
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.names import CLASS_WHOLE


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """`members` wait for a node, each with its claims. At least `quorum` of them get one, or none.

    `beside` are the nodes of members that are bound or have a node. `topology_key` is the label by
    whose values kube-scheduler keeps the group together; empty without one. `is_spread`: members
    are kept apart on nodes. `excluded` nodes are reserved for others.
    """

    members: Sequence[PodClaims]
    quorum: int
    beside: NodeSet = 0
    topology_key: str = ""
    is_spread: bool = False
    excluded: NodeSet = 0

    def in_order(self) -> list[PodClaims]:
        """The members as they are placed: those that share a claim first, as it is for one node,
        then those that ask for more."""
        users = Counter(uid for each in self.members for uid in _claims(each))
        return sorted(
            self.members,
            key=lambda each: (
                -max((users[uid] for uid in _claims(each)), default=0),
                *(-amount for amount in _size(each)),
                key_of(each.pod),
            ),
        )


def request_of(
    group: PodGroup,
    members: Sequence[PodClaims],
    *,
    placed: int,
    spreads: bool,
    beside: NodeSet = 0,
    excluded: NodeSet = 0,
) -> GroupRequest:
    """So many other members are `placed`, or need no node. `spreads` is whether members are kept
    apart on nodes where the group says nothing."""
    is_spread = spreads if group.packing is None else group.packing is Packing.SPREAD
    return GroupRequest(
        members, group.quorum(placed), beside, group.topology_key, is_spread, excluded
    )


@dataclass(frozen=True, slots=True)
class Placement:
    """The pod's node, and its claims as they are allocated there."""

    pod: Object
    node: str
    claims: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class GroupPlaced:
    """Members with their nodes; all of it counts as allocated. Others are `left`: no node has
    devices for them, too."""

    placements: Sequence[Placement]
    left: Sequence[PodClaims] = ()


@dataclass(frozen=True, slots=True)
class GroupUnplaced:
    """No node is given to any member. `fit` of them would fit at most together, and `reason` says
    for people what is short. `lacking` is one that found no place."""

    fit: int
    reason: str
    lacking: PodClaims


def shortage(left: Iterable[PodClaims]) -> str:
    """How many devices the pods ask for, by DeviceClass, in words."""
    devices = Counter[str]()
    for asked in left:
        for exact in (each.alternatives[0] for claim in asked.wanted for each in claim.requests):
            count = exact.device_request.count
            devices[exact.class_name] += 1 if count is None else count
    return " and ".join(f"{count} of {name}" for name, count in sorted(devices.items()))


def free_cards_needed(members: Iterable[PodClaims], quorum: int) -> int:
    """The least number of wholly free cards that so many of the members need together."""
    counts = sorted(sum(map(_whole_cards, asked.wanted)) for asked in members)
    return sum(counts[:quorum])


def _whole_cards(claim: ClaimRequest) -> int:
    """0 of what may be served by other cards than free ones."""
    exacts = [each.alternatives[0] for each in claim.requests if len(each.alternatives) == 1]
    return sum(
        each.device_request.count or 0
        for each in exacts
        if each.class_name == CLASS_WHOLE
        and not (each.tolerations or each.device_request.admin_access)
    )


def with_claims(asked: PodClaims, allocated: dict[str, Object]) -> PodClaims:
    """The same pod, if these claims, by UID, are allocated so."""
    if not any(uid in allocated for uid in _claims(asked)):
        return asked
    made = [allocated[uid] for uid in _claims(asked) if uid in allocated]
    return PodClaims(
        asked.pod,
        [each for each in asked.wanted if each.ref.uid not in allocated],
        {name: allocated.get(uid_of(each), each) for name, each in asked.ours.items()},
        [*asked.allocated, *made],
        asked.volumes,
        [each for each in asked.with_others if each.ref.uid not in allocated],
        asked.await_others,
    )


def _claims(asked: PodClaims) -> list[str]:
    """UIDs of the unallocated claims."""
    return [each.ref.uid for each in asked.together]


def _size(asked: PodClaims) -> tuple[int, int]:
    """Devices, and what is requested of their capacities."""
    requests = [exact.device_request for claim in asked.wanted for exact in claim.exact_requests()]
    devices = sum(1 if each.count is None else each.count for each in requests)
    return devices, sum(amount.value for each in requests for amount in each.capacity.values())
