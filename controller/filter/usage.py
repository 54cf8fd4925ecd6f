"""What a pod may have, checked before anything is allocated. The node side refuses the same as the
last resort (`dra_driver.node.visibility.visible_cards`, `dra_driver.node.plan`). Pure.

Which devices containers may use together: `dra_driver.model.claims.usage_sets` has the rules and
their reasons.

Administrative access is for whole cards only, whoever else uses them. It is for tools that monitor
or repair a card in use; a share or a DRS instance has nothing to monitor beside its user. The API
server checks who may request it (the namespace's label ``resource.kubernetes.io/admin-access``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from controller.allocator.allocate import Allocation
from controller.allocator.claim_request import ClaimRequest
from controller.cache import pods
from controller.cache.keys import full_name, uid_of
from dra_driver.model.claims.claim import ClaimRef, Object, results
from dra_driver.model.claims.usage_sets import (
    UsageSet,
    Use,
    may_be_together,
    usage_sets,
    used_by_containers,
)
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import ATTR_TYPE, CLASS_DRS, CLASS_SHARED, CLASS_WHOLE

_NOT_WHOLE = {CLASS_SHARED: Mode.SHARED, CLASS_DRS: Mode.DRS}


def check_scheduler(pod: Object, served: Collection[str]) -> None:
    """Raises Refused if the pod is for another scheduler than the `served` ones; all are if none
    is named."""
    name = pods.scheduler_name(pod)
    if served and name not in served:
        raise Refused(
            f"pod {full_name(pod)} has schedulerName {name}, and GCUs are allocated only for pods "
            f"whose schedulerName is {' or '.join(sorted(served))}",
            remedy=f"create it again with such a name, or add {name} to controller.schedulerNames "
            "of the chart",
        )


def check_written(wanted: Sequence[ClaimRequest]) -> None:
    """Raises Refused if a claim asks for an amount that kube-scheduler does not read: it would
    grant the default, which the node refuses (`dra_driver.node.plan`)."""
    for claim in wanted:
        for exact in claim.exact_requests():
            if exact.unwritten:
                asked = " and ".join(f"{name} {text}" for name, text in exact.unwritten.items())
                raise Refused(
                    f"claim {claim.ref}, request {exact.name}: its GcuConfig asks for {asked}, and "
                    "kube-scheduler reads capacity.requests alone",
                    remedy="delete the claim, and the pod that it was made for, and create them "
                    "again: a new claim gets the same in capacity.requests",
                )


def check_requested(
    pod: Object, ours: Mapping[str, Object], wanted: Sequence[ClaimRequest]
) -> None:
    """Raises Refused if no devices at all would be allowed for the pod's claims `ours` (by their
    names in the pod); `wanted` are the unallocated ones."""
    _check_named_once(pod, ours)
    for unallocated in wanted:
        for request in unallocated.requests:
            for exact in request.alternatives:
                part = _NOT_WHOLE.get(exact.class_name)
                if exact.device_request.admin_access and part is not None:
                    raise _no_access(
                        unallocated, exact.name, f"{exact.class_name} has {part} devices"
                    )
    modes: dict[Use, list[str]] = {}
    for claim in ours.values():
        for request in claim["spec"]["devices"].get("requests") or ():
            exactly = request.get("exactly") or {}
            is_drs = exactly.get("deviceClassName") == CLASS_DRS
            mode = Mode.DRS.value if is_drs else "unknown"
            modes[Use(uid_of(claim), request["name"])] = [mode] * int(exactly.get("count", 1))
    _check(pod, ours, modes)


def check_allocated(
    pod: Object, ours: Mapping[str, Object], wanted: Sequence[ClaimRequest], decision: Allocation
) -> None:
    """Raises Refused if a container may not use the chosen devices beside those that the pod's
    claims have, or if a person's DeviceClass gave administrative access to a part of a card."""
    modes: defaultdict[Use, list[str]] = defaultdict(list)
    for claim in ours.values():
        for result in results(claim):
            modes[Use(uid_of(claim), result.main_request)].append(result.device.partition("-")[0])
    for unallocated, devices in zip(wanted, decision.assignments, strict=True):
        for chosen in devices:
            name, mode = chosen.request.name, chosen.device.kind.text(ATTR_TYPE)
            if chosen.request.device_request.admin_access and mode in _NOT_WHOLE.values():
                device = f"{chosen.device.id.name} of node {decision.node} is a {mode} device"
                raise _no_access(unallocated, name, device)
            modes[Use(unallocated.ref.uid, name.partition("/")[0])].append(mode or "unknown")
    _check(pod, ours, modes)


def differs(
    pod: Object, ours: Mapping[str, Object], other: Object, theirs: Mapping[str, Object]
) -> str | None:
    """The note of an event, if `other`, a bound pod, uses a claim together with other requests than
    `pod` does; else None. `ours` and `theirs` are the claims of `pod` and `other`, by their names
    in the pods. For a prepared claim the kubelet calls no driver, so nobody can refuse `pod`."""
    shared = set(map(uid_of, ours.values())) & set(map(uid_of, theirs.values()))
    for name, claim in ours.items():
        uid = uid_of(claim)
        if uid in shared and _together(pod, ours, uid) != _together(other, theirs, uid):
            return (
                f"claim {ClaimRef.of(claim)} ({name!r} here) is in use by pod "
                f"{other['metadata']['name']}, whose containers use it together with other GCU "
                "requests than this pod's do; the variables in this pod's containers are those of "
                "that pod. Use the same claims and requests together in every pod that shares one"
            )
    return None


def _together(pod: Object, claims: Mapping[str, Object], uid: str) -> set[UsageSet]:
    """The usage sets of the claim's requests."""
    names = {name: uid_of(claim) for name, claim in claims.items()}
    requests = {uid_of(claim): _requests(claim) for claim in claims.values()}
    try:
        sets = usage_sets(pod, names, requests)
    except Refused:
        return set()  # the pod breaks the rule by itself, and has an event about that
    return {used for use, used in sets.items() if use.claim == uid}


def _check(pod: Object, ours: Mapping[str, Object], modes: Mapping[Use, Sequence[str]]) -> None:
    requests = {uid_of(claim): _requests(claim) for claim in ours.values()}
    names = {name: uid_of(claim) for name, claim in ours.items()}
    usage_sets(pod, names, requests)
    users: defaultdict[UsageSet, list[str]] = defaultdict(list)
    for container, used in used_by_containers(pod, names, requests):
        users[used].append(container)
    for used, using in users.items():
        found = [mode for use in used for mode in modes.get(use, ())]
        if not may_be_together(found):
            raise Refused(
                f"{_listed(sorted(using))} of pod {full_name(pod)} would have {len(found)} GCU "
                "devices, and one is a DRS instance, and a container's variables can name one "
                "instance only",
                remedy="let each container use one DRS request, and no other GCU request beside it",
            )


def _check_named_once(pod: Object, ours: Mapping[str, Object]) -> None:
    """kube-scheduler reserves a claim once for each name that the pod has for it, and the API
    server refuses the second reservation (``Duplicate value``, seen on 1.37.1)."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for name, claim in ours.items():
        names[uid_of(claim)].append(name)
    for name, claim in ours.items():
        if len(same := names[uid_of(claim)]) > 1:
            raise Refused(
                f"pod {full_name(pod)} names claim {ClaimRef.of(claim)} {len(same)} times in "
                f"spec.resourceClaims ({', '.join(map(repr, same))}), and kube-scheduler cannot "
                "reserve a claim twice for one pod",
                remedy=f"create the pod again with {name!r} alone, and let all containers use that",
            )


def _no_access(wanted: ClaimRequest, request: str, why: str) -> Refused:
    return Refused(
        f"claim {wanted.ref}, request {request}: adminAccess is for whole cards, and {why}",
        remedy=f"request the DeviceClass {CLASS_WHOLE}, or drop adminAccess",
    )


def _requests(claim: Object) -> frozenset[str]:
    requests = claim["spec"]["devices"].get("requests") or ()
    return frozenset(request["name"] for request in requests)


def _listed(containers: Sequence[str]) -> str:
    noun = "container" if len(containers) == 1 else "containers"
    return f"{noun} {', '.join(map(repr, containers))}"
