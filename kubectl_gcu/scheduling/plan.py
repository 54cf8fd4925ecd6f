"""``kubectl gcu plan``: whether the pods of a manifest would get their GCUs, where, and what would
be left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller.cache import pods
from controller.cache.keys import full_name
from controller.cache.pod_groups import PodGroup, PodGroups
from controller.placer.outcome import Unplaced
from controller.webhook.limits import NODE_LABEL, resources_by_claim
from dra_driver.asks.claims import claim_of
from dra_driver.asks.templates import template_for
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import (
    PODS,
    RESOURCE_CLAIMS,
    Resource,
)
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.errors import InvalidValue, Refused
from kubectl_gcu.cluster.manifest import Manifest, malformed
from kubectl_gcu.inventory.by_claims import nodes_by_claims
from kubectl_gcu.inventory.views import NodeView
from kubectl_gcu.scheduling.decision import LiveAllocator
from kubectl_gcu.scheduling.packing import packing_text


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """`node` is empty where the pod does not get all it asks for, and then `reason` says why; or
    where it does not ask for any GCU. `devices` has the name of each device with the amount that
    it would give (empty: the card)."""

    pod: str
    asks: bool = True
    node: str = ""
    devices: tuple[tuple[str, str], ...] = ()
    reason: str = ""

    @property
    def fits(self) -> bool:
        return bool(self.node) or not self.asks

    def __str__(self) -> str:
        if not self.asks:
            return f"pod {self.pod}: asks for no GCU"
        if not self.node:
            return f"pod {self.pod}: does not fit: {self.reason}"
        parts = [f"{name} ({amount})" if amount else name for name, amount in self.devices]
        return f"pod {self.pod}: node {self.node}: {', '.join(parts)}"


class Planner:
    """Places one pod after the other, in the order of the manifest, on the cluster as it is."""

    def __init__(
        self,
        objects: Mapping[Resource, tuple[Object, ...]],
        manifest: Manifest,
        template: Callable[[str, str], Object],
    ) -> None:
        """`objects` as for `LiveAllocator`; `template` gives the claim template of a namespace with
        that name, or raises NotFound."""
        self._objects = objects
        self._template_of = template
        self._allocator = LiveAllocator(objects)
        self._pods = manifest.pods
        self._groups = _groups(manifest)
        self._group_names = set(map(full_name, manifest.groups))
        self._templates = {full_name(each): each for each in manifest.templates}
        # A claim that exists stays as it is.
        self._new_claims = {
            full_name(each): _claim(full_name(each), each) for each in manifest.claims
        }
        self._claims = {full_name(each): each for each in objects[RESOURCE_CLAIMS]}

    def plan(self) -> list[PlannedPod]:
        """Raises InvalidValue for what is malformed."""
        planned = list[PlannedPod]()
        members: dict[str, Iterator[PlannedPod]] = {}  # by group, those that are not returned yet
        for pod in self._pods:
            with malformed(pod):
                group = self._group_of(pod)
                if group is None:
                    planned.append(self._place(pod))
                    continue
                if group.name not in members:
                    members[group.name] = iter(self._place_group(group))
                planned.append(next(members[group.name]))
        return planned

    @property
    def packing(self) -> str:
        """For people: how nodes and cards are chosen where claims say nothing."""
        return packing_text(self._allocator.packing, for_scheduler=self._allocator.for_scheduler)

    def left(self) -> list[NodeView]:
        """The cards with all that was placed."""
        allocator = self._allocator
        return nodes_by_claims(allocator.inventory, allocator.claims(), self._objects[PODS])

    def _group_of(self, pod: Object) -> PodGroup | None:
        """None where each pod is placed by itself, and for a group that is not in the manifest."""
        is_planned = pods.group_name(pod) in self._group_names
        return self._groups.group_of(pod) if is_planned and self._allocator.for_scheduler else None

    def _place_group(self, group: PodGroup) -> list[PlannedPod]:
        """All its pods in their order, or as many as kube-scheduler binds together; or none."""
        members = [pod for pod in self._pods if pods.group_name(pod) == group.name]
        made: Sequence[Sequence[Object] | None] | str
        try:
            translated = [_translated(pod) for pod in members]
            asked = [(pod, dict(self._claims_of(pod))) for pod in translated]
            made = group.waits_for() or self._allocator.place_group(group, asked)
        except (Refused, InvalidValue, NotFound) as error:
            made = str(error)
        if isinstance(made, str):
            return [PlannedPod(full_name(pod), reason=made) for pod in members]
        return [
            PlannedPod(full_name(pod), reason="the others of its group have all that is free")
            if claims is None
            else self._planned(full_name(pod), claims)
            for pod, claims in zip(members, made, strict=True)
        ]

    def _place(self, pod: Object) -> PlannedPod:
        name = full_name(pod)
        try:
            translated = _translated(pod)
            placed = self._allocator.place(translated, dict(self._claims_of(translated)))
        except (Refused, InvalidValue, NotFound) as error:
            return PlannedPod(name, reason=str(error))
        if isinstance(placed, Unplaced):
            return PlannedPod(name, reason=placed.explain())
        return self._planned(name, placed)

    def _planned(self, name: str, placed: Sequence[Object]) -> PlannedPod:
        """With its claims as they would be."""
        known = {full_name(claim): claim for claim in placed}
        self._claims |= known
        given = [each for claim in known.values() for each in results(claim)]
        if not given:
            return PlannedPod(name, asks=False)
        devices = tuple(
            (each.device, ", ".join(f"{k} {v}" for k, v in each.consumed.items())) for each in given
        )
        return PlannedPod(name, node=given[0].pool.partition("/")[2], devices=devices)

    def _claims_of(self, pod: Object) -> Iterator[tuple[str, Object]]:
        namespace = pod["metadata"]["namespace"]
        for reference in pod["spec"].get("resourceClaims") or ():
            name = reference["name"]
            if template := reference.get("resourceClaimTemplateName"):
                made = self._template(namespace, template)["spec"]
                yield name, self._allocator.admitted(_claim(f"{full_name(pod)}-{name}", made))
            else:
                yield name, self._named(f"{namespace}/{reference['resourceClaimName']}")

    def _template(self, namespace: str, name: str) -> Object:
        return (
            self._templates.get(f"{namespace}/{name}")
            or template_for(namespace, name)
            or self._template_of(namespace, name)
        )

    def _named(self, name: str) -> Object:
        if name in self._claims:
            return self._claims[name]
        if name not in self._new_claims:
            raise InvalidValue(f"there is no ResourceClaim {name}")
        return self._allocator.admitted(self._new_claims[name])


def _groups(manifest: Manifest) -> PodGroups:
    """The manifest's groups, as the controller would decide about them. None of their pods runs
    yet."""
    groups = PodGroups()
    groups.follow(is_served=True)
    for group in manifest.groups:
        name = full_name(group)
        planned = group | {"metadata": {"uid": f"planned {name}"} | group["metadata"]}
        groups.set_group(name, planned)
    for pod in manifest.pods:
        groups.set_pod(full_name(pod), pod, has_claims=True)
    return groups


def _translated(pod: Object) -> Object:
    """The pod as admission changes it: its limits for GCUs become a claim. Raises Refused with the
    reason where that cannot be."""
    claim = claim_of(pod)
    if claim is None:
        return pod
    spec = pod["spec"] | {
        "resourceClaims": [*(pod["spec"].get("resourceClaims") or ()), claim.reference]
    }
    for container, resources in resources_by_claim(pod, claim):
        spec[container.field] = list(spec[container.field])
        raw = spec[container.field][container.index]
        spec[container.field][container.index] = raw | {"resources": resources}
    if (selector := spec.get("nodeSelector") or {}).get(NODE_LABEL) == "true":  # chart's default
        spec["nodeSelector"] = {name: selector[name] for name in selector if name != NODE_LABEL}
    return pod | {"spec": spec}


def _claim(full: str, made: Object) -> Object:
    namespace, _, name = full.partition("/")
    uid = f"planned {full}"
    metadata = {"namespace": namespace, "name": name, "uid": uid, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": made["spec"]}
