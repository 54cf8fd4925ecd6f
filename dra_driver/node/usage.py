"""Which cards each device of a call must name, so that a container is told of all its cards.

The rule and its reason are in `dra_driver.model.usage_sets`; here the pod of a call is found and
the rule applied to what its claims hold. ``TOPS_VISIBLE_DEVICES`` is known to name one DRS instance
only, so a container has at most one, and nothing else of ours beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dra_driver.kube.errors import NotFound
from dra_driver.model.claim import ClaimRef, Object, reserved_for
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.mode import Mode
from dra_driver.model.usage_sets import UsageSet, Use, usage_sets
from dra_driver.node.ledger import Holding, Ledger, State
from dra_driver.node.ports import ClaimReader
from dra_driver.node.records import Hold

Holds = tuple[Hold, ...]


@dataclass(slots=True)
class Call:
    """The claims of one call, sorted by what is known of them; every key is a UID.

    ``planned`` are to be prepared (``sees`` still empty), ``objects`` their API objects;
    ``held`` are prepared already; ``failed`` could not be planned.
    """

    refs: Mapping[str, ClaimRef]
    planned: dict[str, Holds] = field(default_factory=dict)
    objects: dict[str, Object] = field(default_factory=dict)
    held: dict[str, Holding] = field(default_factory=dict)
    failed: dict[str, GcuError] = field(default_factory=dict)


def with_sight(call: Call, claims: ClaimReader, ledger: Ledger, node: str) -> dict[str, Holds]:
    """The planned holds with `sees` filled in; a claim for which that fails moves to `failed`.

    One claim with one request needs no pod. Otherwise the pod is read from the API server;
    raises Refused where its containers break the rule or it cannot be told which pod it is,
    KubeError where it cannot be read.
    """
    if not call.planned:
        return {}
    only_one = len(call.refs) == 1 and len({hold.request for hold in _all(call.planned)}) == 1
    if only_one:
        for holds in call.planned.values():
            _check_instances(holds)
        return {uid: _together(holds) for uid, holds in call.planned.items()}
    pod = _find_pod(call, claims, node)
    everything = _Uses.of(call, pod, ledger)
    sets = usage_sets(pod, everything.names, everything.requests)
    while True:
        failures = len(call.failed)
        sighted = _try_each(call, everything, sets)
        # A claim that fails holds back those that share a container with it, so look again.
        if len(call.failed) == failures:
            return sighted


def _try_each(call: Call, uses: _Uses, sets: Mapping[Use, UsageSet]) -> dict[str, Holds]:
    sighted: dict[str, Holds] = {}
    for uid in sorted(call.planned.keys() - call.failed.keys()):
        try:
            sighted[uid] = tuple(uses.sighted(uid, hold, sets) for hold in call.planned[uid])
        except Refused as error:
            call.failed[uid] = error
    return sighted


@dataclass(frozen=True, slots=True)
class _Uses:
    """The pod's claims of ours: `names` in the pod to UID, and by UID what is held."""

    names: Mapping[str, str]
    requests: Mapping[str, frozenset[str]]
    holds: Mapping[str, Holds]
    held: Mapping[str, Holding]
    failed: Mapping[str, GcuError]

    @classmethod
    def of(cls, call: Call, pod: Mapping[str, Any], ledger: Ledger) -> _Uses:
        namespace = pod["metadata"].get("namespace", "")
        by_name = {ref.name: uid for uid, ref in call.refs.items()}
        held = dict(call.held)
        names: dict[str, str] = {}
        for entry, claim in _claim_names(pod):
            uid = by_name.get(claim)
            if uid is None:
                # Prepared for another pod: the kubelet leaves it out of the call.
                for holding in ledger.named(namespace, claim):
                    if holding.state is State.PREPARED:
                        uid = holding.owner.uid
                        held[uid] = holding
            if uid is not None:
                names[entry] = uid
        holds = {uid: holding.holds for uid, holding in held.items()} | call.planned
        requests = {uid: frozenset(h.request for h in every) for uid, every in holds.items()}
        # What a claim holds that could not be planned is unknown; what the pod asks of it is not.
        requests |= {uid: _asked(pod, names, uid) for uid in call.failed}
        return cls(names, requests, holds, held, call.failed)

    def sighted(self, uid: str, hold: Hold, sets: Mapping[Use, UsageSet]) -> Hold:
        """The hold with its usage set's cards; raises Refused where they cannot be told."""
        own = sets[Use(uid, hold.request)]
        for use in sorted(own):
            if use.claim in self.failed:
                raise Refused(
                    "a container that uses this claim also uses one that is not ready: "
                    f"{self.failed[use.claim]}"
                )
        _check_instances(self._held_by(own))
        sees = tuple(sorted({other.card for other in self._held_by(own)}))
        for use in sorted(own):
            holding = self.held.get(use.claim)
            if holding is not None and any(
                other.request == use.request and other.sees != sees for other in holding.holds
            ):
                raise Refused(
                    f"a container that uses this claim also uses {holding.owner.title}, which "
                    "was prepared for a pod that combines it with other requests",
                    remedy="use the same claims together in every pod that shares one of them",
                )
        return replace(hold, sees=sees)

    def _held_by(self, uses: UsageSet) -> Holds:
        return tuple(
            hold
            for use in sorted(uses)
            for hold in self.holds[use.claim]
            if hold.request == use.request
        )


def _find_pod(call: Call, claims: ClaimReader, node: str) -> dict[str, Any]:
    """The pod on this node that uses all claims of the call."""
    names = {ref.name for ref in call.refs.values()}
    namespaces = {ref.namespace for ref in call.refs.values()}
    for namespace, name, uid in sorted(_consumers(call)):
        try:
            pod = claims.get_pod(namespace, name)
        except NotFound:
            continue
        same = pod["metadata"].get("uid") == uid and pod["spec"].get("nodeName") == node
        if same and names <= {claim for _, claim in _claim_names(pod)}:
            return pod
    raise Refused(
        f"no pod on node {node} is known to use claims {', '.join(sorted(names))} of namespace "
        f"{', '.join(sorted(namespaces))} together, so what each container sees is unknown",
        remedy="check that the claims' status.reservedFor names the pod",
    )


def _consumers(call: Call) -> set[tuple[str, str, str]]:
    common: set[tuple[str, str, str]] | None = None
    for uid, claim in call.objects.items():
        pods = {
            (call.refs[uid].namespace, entry["name"], entry["uid"])
            for entry in reserved_for(claim)
            if entry.get("resource") == "pods" and not entry.get("apiGroup")
        }
        common = pods if common is None else common & pods
    return common or set()


def _claim_names(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The pod's claims as (name in the pod, name of the ResourceClaim); those made from a
    template are named in the pod's status."""
    made = {
        entry["name"]: entry.get("resourceClaimName")
        for entry in pod.get("status", {}).get("resourceClaimStatuses", ())
    }
    for entry in pod["spec"].get("resourceClaims", ()):
        claim = entry.get("resourceClaimName") or made.get(entry["name"])
        if claim:
            yield entry["name"], claim


def _asked(pod: Mapping[str, Any], names: Mapping[str, str], uid: str) -> frozenset[str]:
    spec = pod["spec"]
    asked = {
        entry.get("request") or "*"
        for container in [*spec.get("initContainers", ()), *spec["containers"]]
        for entry in container.get("resources", {}).get("claims", ())
        if names.get(entry["name"]) == uid
    }
    return frozenset(asked)


def _together(holds: Holds) -> Holds:
    cards = tuple(sorted({hold.card for hold in holds}))
    return tuple(replace(hold, sees=cards) for hold in holds)


def _check_instances(holds: Holds) -> None:
    """Raise Refused where one container would have all of `holds` and may not."""
    if len(holds) > 1 and any(hold.mode is Mode.DRS for hold in holds):
        devices = ", ".join(hold.device for hold in holds)
        raise Refused(
            f"a container would have several devices of which one is a DRS instance ({devices}), "
            "and its variables can name one instance only",
            remedy="let each container use one DRS request, and no other GCU request beside it",
        )


def _all(planned: Mapping[str, Holds]) -> Iterator[Hold]:
    for holds in planned.values():
        yield from holds
