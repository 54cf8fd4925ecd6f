"""What the controller's own allocator decides about a waiting pod on the present cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Final

from controller.allocator.inventory import Inventory
from controller.allocator.nodes.node_set import NodeSet
from controller.allocator.ownership import is_ours
from controller.allocator.packing.policy import BINPACK, SchedulerPolicy
from controller.allocator.state import State
from controller.cache.cache import OTHER_SLICES, ClusterCache
from controller.cache.keys import full_name
from controller.cache.pod_groups import PodGroup
from controller.filter.node_filter import NodeFilter
from controller.filter.predictions import Predictions
from controller.groups.request import GroupPlaced, GroupUnplaced, request_of
from controller.groups.search import GroupSearch
from controller.placer.outcome import Placed, Unplaced
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from controller.webhook.alternatives import CardParts
from controller.webhook.capacity import by_parts, written_devices
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import DRIVER
from dra_driver.selector.selector import Selectors
from kubectl_gcu.scheduling.packing import (
    configured_ignored_fields,
    configured_packing,
    is_for_scheduler,
    served_schedulers,
    unconsidered_plugins,
)
from kubectl_gcu.scheduling.remedies import (
    users_of_several,
    when_no_claim_is_left,
    without_node_constraints,
)
from kubectl_gcu.scheduling.verdict import Verdict

_NEWEST: Final = 2**63  # a version that no server has given yet
_MOST_NAMED: Final = 3
_MOST_TRIED: Final = 500  # claims; each costs a decision


class LiveAllocator:
    """The controller's cache and placer on objects as they were listed. Reservations for the
    pod that is first in line, and nodes on which a pod failed, are in the controller's memory
    alone: nothing of them is known here."""

    def __init__(self, objects: Mapping[Resource, tuple[Object, ...]]) -> None:
        """`objects` has slices, claims, nodes, pods and DeviceClasses, and DeviceTaintRules and
        namespaces where there are any."""
        selectors, slices = Selectors(), objects[RESOURCE_SLICES]
        self.for_scheduler = is_for_scheduler(objects[PODS], slices)
        """Whether kube-scheduler allocates; it serves the same pods, maybe by other devices."""
        self._cache = ClusterCache(selectors, for_scheduler=self.for_scheduler)
        others = [each for each in slices if each["spec"]["driver"] != DRIVER]
        self._cache.replace(RESOURCE_SLICES, slices)
        self._cache.replace(OTHER_SLICES, others)
        for resource in (DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, PODS):
            self._cache.replace(resource, objects[resource])
        for resource in (DEVICE_TAINT_RULES, NAMESPACES):
            self._cache.replace(resource, objects.get(resource, ()))
        self._claims = {each["metadata"]["uid"]: each for each in objects[RESOURCE_CLAIMS]}
        self._pods = {full_name(each) for each in objects[PODS]}
        self.packing = configured_packing(objects[PODS])
        """The controller's, where a pod of it is among the objects."""
        packing = self.packing or BINPACK
        by_scheduler = SchedulerPolicy(packing.nodes, packing.cards)
        self._nodes = NodeFilter(
            self._cache,
            self._cache.state().numbers,
            selectors.allowance,
            Predictions(self._cache, unconsidered=unconsidered_plugins(objects[PODS])),
        )
        self._placer = Placer(
            self._cache,
            self._nodes,
            by_scheduler if self.for_scheduler else packing,
            schedulers=() if self.for_scheduler else served_schedulers(objects[PODS]),
            ignored_fields=configured_ignored_fields(objects[PODS]),
        )

    def decide(
        self, pod: Object, claims: Mapping[str, Object], volumes: Sequence[Object] = ()
    ) -> Verdict | None:
        """About the pod's `claims`, by their names in the pod; None where nothing of them is to be
        allocated. `volumes` are node selectors of the pod's volumes. Raises Refused and
        InvalidValue where a claim asks for what cannot be given."""
        asked = replace(self._placer.read(pod, claims), volumes=volumes)
        if not asked.wanted:
            return None
        outcome = self._placer.place(asked)
        if isinstance(outcome, Placed):
            return Verdict(outcome.node)
        verdict, feasible = Verdict("", outcome.explain()), outcome.nodes.feasible
        if outcome.depends_on_devices:
            return replace(verdict, needs_person=True)
        elsewhere = self._elsewhere(asked, feasible)
        if feasible:
            verdict = replace(verdict, by_node=self._placer.reasons(asked, feasible))
            verdict = self._with_remedy(verdict, asked, feasible)
        elif outcome.is_prediction:
            remedy = "no claim's end helps: the pod waits until other pods end, or nodes change"
            verdict = replace(verdict, remedy=remedy)
        else:
            remedy = "no claim's end helps: change what keeps the pod from every node"
            verdict = replace(verdict, remedy=remedy, needs_person=True)
        return replace(verdict, remedy="; ".join(filter(None, (verdict.remedy, elsewhere))))

    def _elsewhere(self, asked: PodClaims, feasible: NodeSet) -> str:
        """Which other nodes would serve the pod but for what its author wrote about nodes."""
        relaxed, constraints = without_node_constraints(asked.pod)
        fit = self._placer.serving(replace(asked, pod=relaxed)) & ~feasible
        if not fit:
            return ""
        count = "1 other node" if fit.bit_count() == 1 else f"{fit.bit_count()} other nodes"
        has = "has" if fit.bit_count() == 1 else "have"
        names = list(self._cache.state().numbers.names(fit))
        more = ", …" if len(names) > _MOST_NAMED else ""
        return (
            f"{count} that the pod's {constraints} excludes {has} what it asks for: "
            f"{', '.join(names[:_MOST_NAMED])}{more}"
        )

    def _with_remedy(self, verdict: Verdict, asked: PodClaims, nodes: NodeSet) -> Verdict:
        """Claims on nodes that do not fit the pod cannot help."""
        names = set(self._cache.state().numbers.names(nodes))
        held = [
            each
            for each in self._claims.values()
            if not names.isdisjoint(self._cache.nodes_of_devices(each))
        ]
        if not self._would_fit(asked, without=held):
            requests = [r.device_request for each in asked.wanted for r in each.exact_requests()]
            with self._without(held) as state:
                remedy, tainted = when_no_claim_is_left(state, requests, nodes)
            return replace(verdict, remedy=remedy, tainted=tainted, needs_person=True)
        tried, untried = held[:_MOST_TRIED], len(held[_MOST_TRIED:])
        helps = tuple(full_name(each) for each in tried if self._would_fit(asked, without=[each]))
        helps_pods = tuple(
            f"{namespace}/{name}"
            for (namespace, name), several in islice(users_of_several(tried), _MOST_TRIED)
            if self._would_fit(asked, without=several)
        )
        remedy = ""
        if not helps and not helps_pods:
            remedy = "it fits when several claims end; no single one is enough"
        if untried:
            remedy = f"{untried} of {len(held)} claims were not tried"
        return replace(verdict, helps=helps, helps_pods=helps_pods, remedy=remedy)

    def admitted(self, claim: Object) -> Object:
        """A new claim as it would be stored. Raises Refused and InvalidValue where it would not."""
        if not self.for_scheduler:
            return claim
        state = self._cache.state()
        kinds = {
            device.kind
            for pool in state.inventory.pools.values()
            for device in pool.devices
            if device.multiple
        }
        parts = CardParts(kinds, self.packing or BINPACK, state.selectors)
        devices = written_devices(claim, state.classes, by_parts(claim, parts))
        return claim | {"spec": claim["spec"] | {"devices": devices}}

    def place(self, pod: Object, claims: Mapping[str, Object]) -> list[Object] | Unplaced:
        """Decide, and count the devices as allocated from now on. Returns the pod's claims as they
        would be then; or why there are no devices for them. Raises as `decide`."""
        asked = self._placer.read(pod, claims)
        if not asked.wanted:
            return list(claims.values())
        outcome = self._placer.place(asked)
        if isinstance(outcome, Unplaced):
            return outcome
        for made in outcome.claims(self._cache.state().classes, timestamp=""):
            self._allocate(made, pod)
        self._add_pod(pod, claims)
        return [self._claims.get(each["metadata"]["uid"], each) for each in claims.values()]

    def place_group(
        self, group: PodGroup, members: Sequence[tuple[Object, Mapping[str, Object]]]
    ) -> list[list[Object] | None] | str:
        """The same for all members of the group: the claims of each, None where the others have all
        that is free; or why they are not placed together."""
        for pod, claims in members:
            for claim in claims.values():
                self._cache.apply(RESOURCE_CLAIMS, Change.ADDED, claim)
            self._add_pod(pod, claims)
        asked = [self._placer.read(pod, claims) for pod, claims in members]
        wanted = [each for each in asked if each.wanted]
        outcome = self._search(group, wanted, len(asked) - len(wanted)) if wanted else None
        if isinstance(outcome, GroupUnplaced):
            return outcome.reason
        for placement in () if outcome is None else outcome.placements:
            for made in placement.claims:
                self._cache.forget(made)
                self._allocate(made, placement.pod)
        known = [
            [self._claims.get(claim["metadata"]["uid"], claim) for claim in claims.values()]
            for _, claims in members
        ]
        return [
            its if any(map(results, its)) or not each.wanted else None
            for its, each in zip(known, asked, strict=True)
        ]

    def _search(
        self, group: PodGroup, wanted: Sequence[PodClaims], free: int
    ) -> GroupPlaced | GroupUnplaced:
        """So many members are `free`: they ask for no device."""
        spreads = self._placer.spreads(wanted[0])
        request = request_of(group, wanted, placed=free, spreads=spreads)
        search = GroupSearch(request, self._cache, self._placer, self._nodes, ())
        while not search.advance():
            pass
        assert search.outcome is not None  # it has ended
        return search.outcome

    def _allocate(self, made: Object, pod: Object) -> None:
        """Count the claim as allocated so, and used by the pod."""
        user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        made["status"]["reservedFor"] = [user]
        made["metadata"] = made["metadata"] | {"resourceVersion": str(_NEWEST)}
        self._cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, made)
        self._claims[made["metadata"]["uid"]] = made

    def _add_pod(self, pod: Object, claims: Mapping[str, Object]) -> None:
        """What spreads keeps apart from the cards of replicas, so the next ones need to see it. One
        that exists stays as it is."""
        if full_name(pod) in self._pods:
            return
        made = [
            {"name": reference, "resourceClaimName": claim["metadata"]["name"]}
            for reference, claim in claims.items()
        ]
        metadata = pod["metadata"] | {"resourceVersion": str(_NEWEST)}
        placed = pod | {"metadata": metadata, "status": {"resourceClaimStatuses": made}}
        self._cache.apply(PODS, Change.ADDED, placed)

    def servable(self, waiting: Iterable[tuple[Object, Mapping[str, Object]]]) -> list[Object]:
        """Of pods with their claims those that would be served if all allocated claims ended."""
        pods = list(waiting)
        allocated = [each for each in self._claims.values() if results(each)] if pods else []
        with self._without(allocated):
            found = [pod for pod, claims in pods[:_MOST_TRIED] if self._is_servable(pod, claims)]
        return found + [pod for pod, _ in pods[_MOST_TRIED:]]

    def _is_servable(self, pod: Object, claims: Mapping[str, Object]) -> bool:
        try:
            outcome = self._placer.place(self._placer.read(pod, claims))
        except (Refused, InvalidValue):
            return False
        return isinstance(outcome, Placed) or outcome.was_stopped

    @property
    def inventory(self) -> Inventory:
        """What is published."""
        return self._cache.state().inventory

    def claims(self) -> tuple[Object, ...]:
        """All claims, with those that were placed."""
        return tuple(self._claims.values())

    def serves(self, claim: Object) -> bool:
        """Whether the claim is for this driver to allocate, and not to be refused."""
        try:
            return is_ours(claim, self._cache.state())
        except Refused:
            return False

    def _would_fit(self, asked: PodClaims, *, without: Sequence[Object]) -> bool:
        with self._without(without):
            return isinstance(self._placer.place(asked), Placed)

    @contextmanager
    def _without(self, claims: Sequence[Object]) -> Iterator[State]:
        """As if these claims had ended."""
        for claim in claims:
            self._cache.apply(RESOURCE_CLAIMS, Change.DELETED, claim)
        try:
            yield self._cache.state()
        finally:
            for claim in claims:
                self._cache.apply(RESOURCE_CLAIMS, Change.ADDED, claim)
