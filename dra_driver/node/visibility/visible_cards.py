"""Which cards each device of a call must name, so that a container sees all its cards.

`dra_driver.model.claims.usage_sets` has the rules and their reasons. Here they are applied to the
claims of a call's pod (`dra_driver.node.visibility.pods`), with those that were prepared for other
pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from dra_driver.model.claims.claim import ClaimRef, Object, claim_names
from dra_driver.model.claims.usage_sets import UsageSet, Use, may_be_together, usage_sets
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger, PreparedClaim
from dra_driver.node.checkpoint.records import PreparedDevice, PreparedDevices
from dra_driver.node.ports import ObjectReader
from dra_driver.node.visibility.pods import find_pods, is_of_group, may_use_others, title

_REMEDY: Final = "use the same claims together in every pod that shares one of them"


@dataclass(slots=True)
class CallClaim:
    """One claim of a prepare call, a row that the steps of the call fill in.

    `held` is set if it is prepared already. Otherwise `object` is what the API server has, and
    `devices` are to be prepared. After an `error` nothing more is done for the claim.
    """

    ref: ClaimRef
    held: PreparedClaim | None = None
    object: Object | None = None
    devices: PreparedDevices = ()
    error: GcuError | None = None


def planned(call: Mapping[str, CallClaim]) -> dict[str, CallClaim]:
    """The claims of a call whose devices are to be prepared. Both are by UID."""
    return {uid: each for uid, each in call.items() if each.held is None and each.error is None}


def resolve_visible_cards(
    call: Mapping[str, CallClaim], reader: ObjectReader, ledger: Ledger, node: str
) -> None:
    """Give the planned devices their `visible_cards`, or the claim the error.

    The pod is not read if the call has one request only, and the pod can have no other claim of
    this driver. Otherwise it is read from the API server. Raises Refused if its containers break
    the rule or the pod is unknown, KubeError if it cannot be read.
    """
    new = planned(call)
    if not new:
        return
    requests = {device.request for claim in new.values() for device in claim.devices}
    is_one = len(call) == 1 and len(requests) == 1
    refs = [claim.ref for claim in call.values()]
    objects = [claim.object for claim in call.values() if claim.object is not None]
    pods: Sequence[Object] = ()
    if not is_one or may_use_others(ledger, refs[0], objects[0]):
        pods = find_pods(refs, objects, reader, node)
    if not pods:
        if not is_one:
            raise _unknown_pod(refs, objects, node)
        for claim in new.values():  # no container here can use it with another claim
            cards = _cards_seen(claim.devices)
            claim.devices = tuple(replace(each, visible_cards=cards) for each in claim.devices)
        return
    answers = [_for_pod(call, pod, ledger) for pod in pods]
    for uid, claim in new.items():
        found = _agreed([each[uid] for each in answers], pods)
        if isinstance(found, GcuError):
            claim.error = found
        else:
            claim.devices = found


def _agreed(
    answers: Sequence[PreparedDevices | GcuError], pods: Sequence[Object]
) -> PreparedDevices | GcuError:
    """The answer that is the same for all pods: the kubelet does not say for which pod it calls,
    and does not call again for the others."""
    for answer in answers:
        if isinstance(answer, GcuError):
            return answer
    if any(answer != answers[0] for answer in answers):
        return Refused(
            f"pods {', '.join(map(title, pods))} use this claim together with different GCU "
            "requests, and a container's variables can name only one set",
            remedy=_REMEDY,
        )
    return answers[0]


def _unknown_pod(refs: Sequence[ClaimRef], read: Sequence[Object], node: str) -> Refused:
    remedy = "check that the claims' status.reservedFor names the pod"
    if read and all(map(is_of_group, read)):
        remedy = "let a pod use one claim of its PodGroup, with one request"
    names = ", ".join(sorted(ref.name for ref in refs))
    return Refused(
        f"no pod on node {node} is known to use claims {names} of namespace {refs[0].namespace} "
        "together, so what each container sees is unknown",
        remedy=remedy,
    )


def _for_pod(
    call: Mapping[str, CallClaim], pod: Object, ledger: Ledger
) -> dict[str, PreparedDevices | GcuError]:
    """The devices of each planned claim with the cards that the pod's containers see, or its error.
    Raises Refused if the containers break the rule."""
    new = planned(call)
    by_name = {claim.ref.name: uid for uid, claim in call.items()}
    held = {uid: claim.held for uid, claim in call.items() if claim.held is not None}
    failed = {uid: claim.error for uid, claim in call.items() if claim.error is not None}
    # Those that were prepared for other pods, which the kubelet leaves out of the call.
    prepared = ledger.prepared_in(pod["metadata"].get("namespace", ""))
    others = {ref.name: each for ref, each in prepared.items()}
    names: dict[str, str] = {}  # the UID by the pod's name of a claim of this driver
    for entry, name in claim_names(pod).items():
        if name in by_name:
            names[entry] = by_name[name]
        elif name in others:
            names[entry] = uid = others[name].owner.uid
            held[uid] = others[name]
    devices = {uid: each.devices for uid, each in held.items()}
    devices |= {uid: each.devices for uid, each in new.items()}
    requests = {uid: frozenset(each.request for each in every) for uid, every in devices.items()}
    # The devices of a claim that could not be planned are unknown, but not the pod's requests.
    requests |= {uid: _asked(pod, names, uid) for uid in failed}
    sets = usage_sets(pod, names, requests)
    while True:
        failures = len(failed)
        resolved: dict[str, PreparedDevices | GcuError] = {}
        for uid in sorted(new.keys() - failed.keys()):
            try:
                resolved[uid] = tuple(
                    _resolved(device, sets[Use(uid, device.request)], devices, held, failed)
                    for device in devices[uid]
                )
            except Refused as error:
                failed[uid] = error
        # A failed claim also fails those that share a container with it, so repeat.
        if len(failed) == failures:
            return resolved | failed


def _resolved(
    device: PreparedDevice,
    used: UsageSet,
    devices: Mapping[str, PreparedDevices],
    held: Mapping[str, PreparedClaim],
    failed: Mapping[str, GcuError],
) -> PreparedDevice:
    """The device with the cards of its usage set; raises Refused if they are unknown. The maps are
    by UID."""
    for use in sorted(used):
        if use.claim in failed:
            raise Refused(
                "a container that uses this claim also uses one that is not ready: "
                f"{failed[use.claim]}"
            )
    together = [
        (use.claim, other)
        for use in sorted(used)
        for other in devices[use.claim]
        if other.request == use.request
    ]
    visible = _cards_seen([other for _, other in together])
    for uid, other in together:
        if uid in held and other.visible_cards != visible:
            raise Refused(
                f"a container that uses this claim also uses {held[uid].owner.title}, which "
                "was prepared for a pod that combines it with other requests",
                remedy=_REMEDY,
            )
    return replace(device, visible_cards=visible)


def _asked(pod: Mapping[str, Any], names: Mapping[str, str], uid: str) -> frozenset[str]:
    spec = pod["spec"]
    asked = {
        entry.get("request") or "*"
        for container in [*spec.get("initContainers", ()), *spec["containers"]]
        for entry in container.get("resources", {}).get("claims", ())
        if names.get(entry["name"]) == uid
    }
    return frozenset(asked)


def _cards_seen(devices: Sequence[PreparedDevice]) -> tuple[PciAddress, ...]:
    """The cards of a container's `devices`; raises Refused if it must not have all of them."""
    if not may_be_together([device.mode for device in devices]):
        names = ", ".join(device.device_name for device in devices)
        raise Refused(
            f"a container would have several devices and one is a DRS instance ({names}), "
            "and its variables can name one instance only",
            remedy="let each container use one DRS request, and no other GCU request",
        )
    return tuple(sorted({device.card for device in devices}))
