"""What a pod may have, checked before anything is allocated. The node side refuses the same as the
last resort (`dra_driver.node.visibility.visible_cards`, `dra_driver.node.plan`). Pure.

What containers may use together: `dra_driver.model.usage_sets` has the rule and its reason.
``TOPS_VISIBLE_DEVICES`` names one DRS instance only, so a container has at most one, and nothing
else of ours beside it.

Administrative access is to whole cards only, whatever else is held of them. It is for tools that
watch or repair a card that others use. A share or a DRS instance is something that a claim has for
itself, so there is nothing of it to look at beside its holder. Who may ask for it is the API
server's to check (the namespace's label ``resource.kubernetes.io/admin-access``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from controller.allocator.allocate import Allocation
from controller.allocator.claim_request import ClaimRequest
from controller.cache.keys import uid_of
from dra_driver.model.claim import ClaimRef, Object, results
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import ATTR_TYPE, CLASS_DRS, CLASS_SHARED, CLASS_WHOLE
from dra_driver.model.usage_sets import UsageSet, Use, usage_sets, used_by_containers

_Devices = Mapping[Use, Sequence[str]]  # the modes of a request's devices
_NOT_WHOLE = {CLASS_SHARED: Mode.SHARED, CLASS_DRS: Mode.DRS}


def check_requested(
    pod: Object, ours: Mapping[str, Object], wanted: Sequence[ClaimRequest]
) -> None:
    """Raises Refused where the pod can never have its claims `ours` (by their names in the pod), of
    which those that are not allocated ask for `wanted`, whatever devices are chosen."""
    for each in wanted:
        for request in each.requests:
            for exact in request.alternatives:
                other = _NOT_WHOLE.get(exact.class_name)
                if exact.demand.admin_access and other is not None:
                    raise _no_access(each, exact.name, f"{exact.class_name} has {other} devices")
    asked: dict[Use, list[str]] = {}
    for claim in ours.values():
        for request in claim["spec"]["devices"].get("requests") or ():
            exactly = request.get("exactly")
            if exactly:
                is_drs = exactly["deviceClassName"] == CLASS_DRS
                count = int(exactly.get("count", 1))
                mode = Mode.DRS.value if is_drs else "unknown"
                asked[Use(uid_of(claim), request["name"])] = [mode] * count
            else:
                asked[Use(uid_of(claim), request["name"])] = ["unknown"]
    _check(pod, ours, asked)


def check_allocated(
    pod: Object, ours: Mapping[str, Object], wanted: Sequence[ClaimRequest], granted: Allocation
) -> None:
    """Raises Refused where the devices that were chosen, beside those that the pod's claims have
    already, are too many for a container, or where somebody's own class led administrative access
    to a device that is no whole card."""
    devices: defaultdict[Use, list[str]] = defaultdict(list)
    for claim in ours.values():
        for result in results(claim):
            devices[Use(uid_of(claim), result.main_request)].append(result.device.partition("-")[0])
    for each, grants in zip(wanted, granted.grants, strict=True):
        for grant in grants:
            mode = grant.device.text(ATTR_TYPE)
            if grant.request.demand.admin_access and mode in _NOT_WHOLE.values():
                device = f"{grant.device.id.name} of node {granted.node} is a {mode} device"
                raise _no_access(each, grant.request.name, device)
            use = Use(each.ref.uid, grant.request.name.partition("/")[0])
            devices[use].append(mode or "unknown")
    _check(pod, ours, devices)


def differs(
    pod: Object, ours: Mapping[str, Object], other: Object, theirs: Mapping[str, Object]
) -> str | None:
    """What to tell people where `other`, a pod that is bound, uses a claim together with others
    than `pod` does (`ours` and `theirs` are their claims by name in the pod); None where there is
    nothing to tell. The kubelet does not ask again for a claim that is prepared, so nobody can
    refuse the later pod."""
    shared = {uid_of(claim) for claim in ours.values()} & {
        uid_of(claim) for claim in theirs.values()
    }
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
        return set()  # it breaks the rule by itself, and was told so
    return {used for use, used in sets.items() if use.claim == uid}


def _check(pod: Object, ours: Mapping[str, Object], devices: _Devices) -> None:
    requests = {uid_of(claim): _requests(claim) for claim in ours.values()}
    names = {name: uid_of(claim) for name, claim in ours.items()}
    usage_sets(pod, names, requests)
    users: defaultdict[UsageSet, list[str]] = defaultdict(list)
    for container, used in used_by_containers(pod, names, requests):
        users[used].append(container)
    for used, using in users.items():
        modes = [mode for use in used for mode in devices.get(use, ())]
        if len(modes) > 1 and Mode.DRS.value in modes:
            raise Refused(
                f"{_listed(sorted(using))} of pod {pod['metadata']['namespace']}/"
                f"{pod['metadata']['name']} would have {len(modes)} GCU devices of which one is a "
                "DRS instance, and a container's variables can name one instance only",
                remedy="let each container use one DRS request, and no other GCU request beside it",
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
