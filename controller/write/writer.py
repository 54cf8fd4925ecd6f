"""Executes commands against the API server, in the threads of the dispatcher's pool.

Claims are PUT with the resourceVersion that was read, so that of two writers one meets a conflict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count

from controller.cache.keys import uid_of
from controller.cache.pods import has_our_gate
from controller.write.commands import (
    Answer,
    Command,
    CreateTemplate,
    DeleteTemplate,
    LiftGate,
    ReadClaim,
    ReadVolumes,
    ReleaseAllocation,
    SettleUncertain,
    TakeoverCommand,
    WriteAllocation,
    WriteTerm,
)
from controller.write.volumes import node_selectors
from dra_driver.kube.api import NOTHING, ObjectApi, PatchType
from dra_driver.kube.errors import AlreadyExists, Conflict, KubeError, NotFound, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from dra_driver.model.claim import ClaimRef, Object, allocation, is_in_use, results
from dra_driver.model.errors import GcuError
from dra_driver.model.names import ANNOTATION_TERM, FINALIZER, SCHEDULING_GATE

logger = logging.getLogger(__name__)


class Writer:
    """Safe for several threads. `term` gives the name of the present term of leadership."""

    def __init__(self, api: ObjectApi, *, term: Callable[[], str] = str) -> None:
        self._api = api
        self._term = term
        self._marks = count(1)

    def execute(self, command: Command | TakeoverCommand) -> Answer:
        """Never raises: an answer can have any error. What an allocation does not answer itself
        leaves unknown what was written before it: the claims are uncertain."""
        try:
            return self._execute(command)
        except Exception as error:  # noqa: BLE001 - the deciding thread sets the object aside
            match command:
                case WriteAllocation(claims=claims) | SettleUncertain(claims=claims):
                    return Answer(error=error, uncertain=claims)
            return Answer(error=error)

    def _execute(self, command: Command | TakeoverCommand) -> Answer:
        match command:
            case WriteAllocation():
                answer = self._allocate_for_pod(command)
            case ReleaseAllocation():
                answer = self.release(command.claims, command.why)
            case SettleUncertain():
                answer = self._settle(command.claims[0])
            case LiftGate():
                answer = Answer(pod=self.lift_gate(command.pod))
            case ReadVolumes():
                answer = Answer(found=tuple(node_selectors(self._api, command.pod)))
            case CreateTemplate() | DeleteTemplate():
                answer = Answer(found=self._keep_template(command))
            case ReadClaim() | WriteTerm():
                answer = Answer((self._take_over(command),))
        return answer

    def _take_over(self, command: TakeoverCommand) -> Object:
        if isinstance(command, WriteTerm):
            return self.fence(command.claim, command.term)
        name, namespace = command.key.name, command.key.namespace
        return self._api.get(RESOURCE_CLAIMS, name, namespace=namespace)

    def _allocate_for_pod(self, command: WriteAllocation) -> Answer:
        pod = command.pod
        try:
            live = self._read(pod, PODS) if command.read_pod else pod
        except NotFound:
            return Answer(pod_changed=True)
        except GcuError as error:
            return Answer(error=error)
        if _version(live) != _version(pod):
            return Answer(pod=live if uid_of(live) == uid_of(pod) else None, pod_changed=True)
        answer = self.allocate(command.claims)
        if answer.error is not None or not has_our_gate(pod):
            return answer
        try:
            return replace(answer, pod=self.lift_gate(pod))
        except GcuError as error:
            return replace(answer, error=error)

    def allocate(self, planned: Sequence[Object]) -> Answer:
        """Write all these allocations of one pod."""
        stored: list[Object] = []
        for claim in planned:
            try:
                protected = self._protected(claim)
            except GcuError as error:
                return self._ended(stored, claim, error)
            try:
                body = protected | {"status": claim["status"]}
                stored.append(self._api.replace(RESOURCE_CLAIMS, body, subresource="status"))
            except Unavailable as error:
                settled = self._settle(claim)
                return replace(settled, claims=(*stored, *settled.claims), error=error)
            except GcuError as error:
                return self._ended(stored, claim, error)
            devices = ", ".join(each.device for each in results(claim))
            logger.info("allocated %s to claim %s", devices, ClaimRef.of(claim))
        return Answer(tuple(stored))

    def release(self, claims: Sequence[Object], why: str) -> Answer:
        """Take the allocations away. The caller has made sure that nobody uses the claims; a
        reservation in the meantime is a conflict."""
        stored: list[Object] = []
        for claim in claims:
            try:
                whole = self._whole(claim)
                status = {
                    key: value
                    for key, value in whole["status"].items()
                    if key not in {"allocation", "devices", "reservedFor"}
                }
                body = whole | {"status": status}
                stored.append(self._api.replace(RESOURCE_CLAIMS, body, subresource="status"))
            except NotFound:
                continue
            except GcuError as error:
                return self._ended(stored, claim, error)
            logger.info("released claim %s: %s", ClaimRef.of(claim), why)
        return Answer(tuple(stored))

    def lift_gate(self, pod: Object) -> Object | None:
        """Let kube-scheduler look at the pod; None where that is another one by now."""
        metadata = pod["metadata"]
        body = {
            "metadata": {"uid": metadata["uid"]},
            "spec": {"schedulingGates": [{"$patch": "delete", "name": SCHEDULING_GATE}]},
        }
        try:
            lifted = self._api.patch(
                PODS,
                metadata["name"],
                body,
                namespace=metadata["namespace"],
                patch_type=PatchType.STRATEGIC_MERGE,
            )
        except (NotFound, Conflict):
            return None
        logger.info("lifted the gate of pod %s/%s", metadata["namespace"], metadata["name"])
        return lifted

    def fence(self, claim: Object, term: str) -> Object:
        """Write the leader's term into the claim unless it is allocated, so that whatever was to
        be written over an earlier version meets a conflict. Gives the claim as it is then. Raises
        Conflict where there is none: an admission webhook may refuse in that word."""
        while allocation(claim) is None:
            try:
                return self._add(claim, annotations={ANNOTATION_TERM: term})
            except Conflict:
                live = self._read(claim)
                if _version(live) == _version(claim):
                    raise
                claim = live
        return claim

    def _settle(self, claim: Object) -> Answer:
        """Make sure that no earlier write of ours to the claim can still arrive."""
        try:
            live = self._read(claim)
            if live["metadata"]["uid"] != claim["metadata"]["uid"]:
                return Answer((live,))  # what was written for another one meets a conflict
            return Answer((self.fence(live, f"{self._term()}.{next(self._marks)}"),))
        except NotFound:
            return Answer()
        except GcuError as error:
            return Answer(error=error, uncertain=(claim,))

    def _ended(self, stored: list[Object], claim: Object, error: GcuError) -> Answer:
        if isinstance(error, Conflict):
            with suppress(KubeError):  # the watch tells as well, a little later
                stored.append(self._read(claim))
        return Answer(tuple(stored), error=error)

    def _read(self, obj: Object, resource: Resource = RESOURCE_CLAIMS) -> Object:
        metadata = obj["metadata"]
        return self._api.get(resource, metadata["name"], namespace=metadata["namespace"])

    def _whole(self, claim: Object) -> Object:
        """All of the claim that was decided on, to be written. Raises Conflict where it is another
        one by now."""
        if not is_in_use(claim):  # of any other one not all fields are decoded
            return claim
        live = self._read(claim)
        if _version(live) != _version(claim):
            raise Conflict(f"claim {ClaimRef.of(claim)} has changed since it was decided on")
        return live

    def _protected(self, claim: Object) -> Object:
        """With the finalizer, as a claim with an allocation must never vanish."""
        if FINALIZER in (claim["metadata"].get("finalizers") or ()):
            return claim
        return self._add(claim, finalizers=(FINALIZER,))

    def _add(
        self,
        claim: Object,
        *,
        finalizers: Sequence[str] = (),
        annotations: Mapping[str, str] = NOTHING,
    ) -> Object:
        if claim["spec"]["devices"].get("config"):
            return self._api.add_metadata(
                RESOURCE_CLAIMS, claim, finalizers=finalizers, annotations=annotations
            )
        metadata = dict(claim["metadata"])
        if finalizers:
            metadata["finalizers"] = [*(metadata.get("finalizers") or ()), *finalizers]
        if annotations:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
        return self._api.replace(RESOURCE_CLAIMS, claim | {"metadata": metadata})

    def _keep_template(self, command: CreateTemplate | DeleteTemplate) -> tuple[Object, ...]:
        """Gives the template that was to be created as it is stored, whoever created it."""
        if isinstance(command, DeleteTemplate):
            self._delete(command.template)
            return ()
        try:
            created = self._api.create(RESOURCE_CLAIM_TEMPLATES, command.template)
        except AlreadyExists:
            return (self._read(command.template, RESOURCE_CLAIM_TEMPLATES),)
        logger.info("made claim template %s/%s", command.key.namespace, command.key.name)
        return (created,)

    def _delete(self, template: Object) -> None:
        metadata = template["metadata"]
        try:
            self._api.delete(
                RESOURCE_CLAIM_TEMPLATES,
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                # Somebody who takes our label off makes it his own.
                resource_version=metadata["resourceVersion"],
            )
        except (NotFound, Conflict) as error:
            logger.info("claim template is another one by now: %s", error)
        else:
            logger.info("deleted claim template %s/%s", metadata["namespace"], metadata["name"])


def _version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])
