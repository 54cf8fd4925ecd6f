"""Which cards each device of a call must name, so that a container sees all its cards.

`dra_driver.model.claims.usage_sets` has the rules and their reasons. Here they are applied to the
claims of a call's pod (`dra_driver.node.visibility.pods`), with those that were prepared for other
pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
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


PrepareCall = Mapping[str, CallClaim]
"""All claims of a call, by UID."""


def planned(call: PrepareCall) -> dict[str, CallClaim]:
    """The claims whose devices are to be prepared, by UID."""
    return {uid: each for uid, each in call.items() if each.held is None and each.error is None}


def resolve_visible_cards(
    call: PrepareCall, reader: ObjectReader, ledger: Ledger, node: str
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
    call: PrepareCall, pod: Object, ledger: Ledger
) -> dict[str, PreparedDevices | GcuError]:
    """The devices of each planned claim with the cards that the pod's containers see, or its error.
    Raises Refused if the containers break the rule."""
    new = planned(call)
    failed = {uid: claim.error for uid, claim in call.items() if claim.error is not None}
    uses = _Uses.of(call, pod, ledger, failed)
    sets = usage_sets(pod, uses.names, uses.requests)
    while True:
        failures = len(failed)
        resolved: dict[str, PreparedDevices | GcuError] = {}
        for uid in sorted(new.keys() - failed.keys()):
            try:
                resolved[uid] = tuple(
                    uses.resolved(uid, device, sets) for device in new[uid].devices
                )
            except Refused as error:
                failed[uid] = error
        # A failed claim also fails those that share a container with it, so repeat.
        if len(failed) == failures:
            return resolved | failed


class _Uses(msgspec.Struct, frozen=True):
    """The pod's claims of this driver. `names` maps the pod's name of a claim to its UID; the other
    maps are by UID."""

    names: Mapping[str, str]
    requests: Mapping[str, frozenset[str]]
    devices: Mapping[str, PreparedDevices]
    held: Mapping[str, PreparedClaim]
    failed: Mapping[str, GcuError]

    @classmethod
    def of(
        cls, call: PrepareCall, pod: Object, ledger: Ledger, failed: Mapping[str, GcuError]
    ) -> _Uses:
        namespace = pod["metadata"].get("namespace", "")
        by_name = {claim.ref.name: uid for uid, claim in call.items()}
        held = {uid: claim.held for uid, claim in call.items() if claim.held is not None}
        # Those that were prepared for other pods, which the kubelet leaves out of the call.
        others = {ref.name: each for ref, each in ledger.prepared_in(namespace).items()}
        names: dict[str, str] = {}
        for entry, name in claim_names(pod).items():
            if name in by_name:
                names[entry] = by_name[name]
            elif name in others:
                names[entry] = uid = others[name].owner.uid
                held[uid] = others[name]
        devices = {uid: each.devices for uid, each in held.items()}
        devices |= {uid: each.devices for uid, each in planned(call).items()}
        requests = {uid: frozenset(h.request for h in every) for uid, every in devices.items()}
        # The devices of a claim that could not be planned are unknown, but not the pod's requests.
        requests |= {uid: _asked(pod, names, uid) for uid in failed}
        return cls(names, requests, devices, held, failed)

    def resolved(
        self, uid: str, device: PreparedDevice, sets: Mapping[Use, UsageSet]
    ) -> PreparedDevice:
        """The device with the cards of its usage set; raises Refused if they are unknown."""
        own = sets[Use(uid, device.request)]
        for use in sorted(own):
            if use.claim in self.failed:
                raise Refused(
                    "a container that uses this claim also uses one that is not ready: "
                    f"{self.failed[use.claim]}"
                )
        visible = _cards_seen(self._devices_of(own))
        for use in sorted(own):
            held = self.held.get(use.claim)
            if held is not None and any(
                other.request == use.request and other.visible_cards != visible
                for other in held.devices
            ):
                raise Refused(
                    f"a container that uses this claim also uses {held.owner.title}, which "
                    "was prepared for a pod that combines it with other requests",
                    remedy=_REMEDY,
                )
        return replace(device, visible_cards=visible)

    def _devices_of(self, uses: UsageSet) -> PreparedDevices:
        return tuple(
            device
            for use in sorted(uses)
            for device in self.devices[use.claim]
            if device.request == use.request
        )


def _asked(pod: Mapping[str, Any], names: Mapping[str, str], uid: str) -> frozenset[str]:
    spec = pod["spec"]
    asked = {
        entry.get("request") or "*"
        for container in [*spec.get("initContainers", ()), *spec["containers"]]
        for entry in container.get("resources", {}).get("claims", ())
        if names.get(entry["name"]) == uid
    }
    return frozenset(asked)


def _cards_seen(devices: PreparedDevices) -> tuple[PciAddress, ...]:
    """The cards of a container's `devices`; raises Refused if it must not have all of them."""
    if not may_be_together([device.mode for device in devices]):
        names = ", ".join(device.device_name for device in devices)
        raise Refused(
            f"a container would have several devices and one is a DRS instance ({names}), "
            "and its variables can name one instance only",
            remedy="let each container use one DRS request, and no other GCU request",
        )
    return tuple(sorted({device.card for device in devices}))
