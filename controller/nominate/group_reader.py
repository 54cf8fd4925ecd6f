"""What is to be placed for a group of pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controller.allocator.nodes.node_set import NodeSet
from controller.allocator.ownership import MixesDrivers
from controller.cache import pods
from controller.cache.pod_groups import Member, PodGroup
from controller.groups.request import GroupRequest, request_of
from controller.nominate.claim_reader import ClaimReader
from controller.nominate.limits_claim import claims_of
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from controller.reconcile.context import Context
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue, Refused


class MemberRefused(Exception):
    """The pod may not have what it asks for."""

    def __init__(self, pod: Object, error: Exception) -> None:
        super().__init__(str(error))
        self.pod = pod
        self.error = error


@dataclass(frozen=True, slots=True)
class GroupReader:
    """One thread. `on_read` is called with what each member asks for."""

    context: Context
    placer: Placer
    reader: ClaimReader
    on_read: Callable[[PodClaims], object]

    def read(
        self,
        group: PodGroup,
        members: Sequence[Object],
        pending: Sequence[Object],
        excluded: NodeSet,
    ) -> GroupRequest | None:
        """For the waiting members that have no node. kube-scheduler has still to try those that
        are `pending`. The request has no members if none of them asks for a device; it is None
        while something is not known that decides. Raises MemberRefused."""
        found = [self._read(pod) for pod in members]
        if None in found:
            return None
        asked = [each for each in found if each is not None and each.wanted]
        return request_of(
            group,
            asked,
            placed=group.counts[Member.BOUND] + len(pending) + len(members) - len(asked),
            spreads=bool(asked) and self.placer.spreads(asked[0]),
            beside=self._beside(group, pending),
            excluded=excluded,
        )

    def _read(self, pod: Object) -> PodClaims | None:
        claims = claims_of(self.context.cache, pod)
        if claims is None:
            return None
        try:
            asked = self.reader.read(pod, claims)
        except MixesDrivers:
            return PodClaims(pod, ())
        except (Refused, InvalidValue) as error:
            raise MemberRefused(pod, error) from error
        self.on_read(asked)
        return None if self.reader.awaits_others(asked) else self.reader.with_volumes(asked)

    def _beside(self, group: PodGroup, pending: Sequence[Object]) -> NodeSet:
        """The nodes of members that are bound, or that kube-scheduler is about to try."""
        cache = self.context.cache
        bound = map(cache.get, cache.groups.bound_members(group.name))
        names = {pods.node_name(pod) for pod in bound if pod is not None}
        names |= {pods.nominated_node(pod) for pod in pending}
        numbers = cache.state().numbers
        return numbers.set_of([name for name in names if name in numbers])
