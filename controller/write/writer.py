"""Executes commands against the API server, in the threads of the dispatcher's pool.

A claim is PUT with the resourceVersion that was read, so that of two writers one gets a conflict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from controller.cache.keys import uid_of
from controller.cache.pods import has_our_gate
from controller.leaderelection.fence import Fence, fenced
from controller.write.commands import (
    Answer,
    ClearNomination,
    Command,
    CreateTemplate,
    DeleteTemplate,
    FenceClaim,
    LiftGate,
    ReadVolumes,
    ReleaseAllocation,
    WriteAllocation,
)
from controller.write.node_hint import NodeHint
from controller.write.volumes import PodVolumes, read_volumes
from dra_driver.kube.api import NOTHING, ObjectApi, PatchType, ServerVersion
from dra_driver.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Unavailable,
)
from dra_driver.kube.preflight import nominates_before_binding
from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from dra_driver.kube.scheduling_gate import gate_lifted
from dra_driver.model.claims.claim import ClaimRef, Object, allocation, is_in_use, results
from dra_driver.model.errors import GcuError
from dra_driver.model.names import ANNOTATION_TERM, FINALIZER

logger = logging.getLogger(__name__)


class Writer:
    """Safe for several threads. Every write raises NotLeader when `fence` is closed.
    `server_version` asks the API server."""

    def __init__(
        self, api: ObjectApi, fence: Fence, server_version: Callable[[], ServerVersion]
    ) -> None:
        self._api = fenced(api, fence)
        self._server_version = server_version
        self._fence = fence
        self._fenced_claims = count(1)

    def execute(self, command: Command) -> Answer:
        """Never raises: the answer has the error. After an unforeseen error nobody knows which
        claims of an allocation were written: all of them are uncertain."""
        try:
            if isinstance(command, WriteAllocation):
                return self._write_allocation(command)
            return self._execute(command)
        except Exception as error:  # noqa: BLE001 - the deciding thread sets the object aside
            is_uncertain = isinstance(command, WriteAllocation | FenceClaim)
            return Answer(error=error, uncertain=command.claims if is_uncertain else ())

    def allocate(self, claims: Sequence[Object]) -> Answer:
        """Write the allocations of these claims of one pod, one after the other."""
        stored: list[Object] = []
        for claim in claims:
            try:
                # The finalizer comes first: a claim with an allocation must never vanish.
                protected = self._add_metadata(claim, finalizers=(FINALIZER,))
            except GcuError as error:
                return self._failed(stored, claim, error)
            try:
                body = protected | {"status": claim["status"]}
                stored.append(self._api.replace(RESOURCE_CLAIMS, body, subresource="status"))
            except Unavailable as error:
                fence = self._fence_claim(claim)
                return replace(fence, claims=(*stored, *fence.claims), error=error)
            except GcuError as error:
                return self._failed(stored, claim, error)
            devices = ", ".join(each.device for each in results(claim))
            logger.info("allocated %s to claim %s", devices, ClaimRef.of(claim))
        return Answer(tuple(stored))

    def release(self, claims: Sequence[Object], why: str) -> Answer:
        """Clear the allocations of these claims, which nobody uses. A reservation in the meantime
        is a conflict."""
        stored: list[Object] = []
        for claim in claims:
            try:
                whole = self._whole(claim)
                removed = {"allocation", "devices", "reservedFor"}
                status = {key: each for key, each in whole["status"].items() if key not in removed}
                body = whole | {"status": status}
                stored.append(self._api.replace(RESOURCE_CLAIMS, body, subresource="status"))
            except NotFound:
                continue
            except GcuError as error:
                return self._failed(stored, claim, error)
            logger.info("released claim %s: %s", ClaimRef.of(claim), why)
        return Answer(tuple(stored))

    def write_term(self, claim: Object, term: str) -> Object:
        """Write the leader's term into the claim unless it is allocated, so that every write over
        an earlier version gets a conflict. Returns the present claim. Raises Conflict only where
        an admission webhook refuses in that word."""
        while allocation(claim) is None:
            try:
                return self._add_metadata(claim, annotations={ANNOTATION_TERM: term})
            except Conflict:
                live = self._read(claim)
                if _version(live) == _version(claim):
                    raise
                claim = live
        return claim

    def _execute(self, command: Command) -> Answer:
        answer = Answer()
        match command:
            case ReleaseAllocation():
                answer = self.release(command.claims, command.why)
            case FenceClaim():
                answer = self._fence_claim(command.claims[0])
            case LiftGate():
                answer = self._tell_and_lift(command)
            case ClearNomination():
                answer = Answer(pod=self._clear_nomination(command.pod))
            case ReadVolumes():
                answer = Answer(volumes=self._read_volumes(command.pod))
            case CreateTemplate():
                answer = Answer(found=(self._create_template(command.template),))
            case DeleteTemplate():
                self._delete_template(command.template)
        return answer

    def _read_volumes(self, pod: Object) -> PodVolumes:
        """Volumes count as unbound only where kube-scheduler does not say that it binds them."""
        found = read_volumes(self._api, pod)
        if found.are_unbound and nominates_before_binding(self._server_version()):
            return replace(found, are_unbound=False)
        return found

    def _write_allocation(self, command: WriteAllocation) -> Answer:
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
        if answer.error is not None or not (command.lifts_gate and has_our_gate(pod)):
            return answer
        try:
            return replace(answer, pod=self._lift_gate(pod))
        except GcuError as error:
            return replace(answer, error=error)

    def _tell_and_lift(self, command: LiftGate) -> Answer:
        """A server that refuses the hint keeps no pod waiting: the gate is lifted without it."""
        pod, node = command.pod, command.node
        spec: Object = {}
        refused: KubeError | None = None
        if node:
            try:
                spec = self._tell(pod, node, command.hint)
            except NotFound:
                return Answer()
            except (Conflict, Forbidden, Invalid) as error:
                if not self._is_there(pod):
                    return Answer()
                refused = error
        return Answer(pod=self._lift_gate(pod, spec), hint_refused=refused)

    def _tell(self, pod: Object, node: str, hint: NodeHint) -> Object:
        """Write what the hint has for the pod's status. Returns what it has for the spec."""
        metadata = pod["metadata"]
        if status := hint.status(node):
            body = {"metadata": {"uid": metadata["uid"]}, "status": status}
            namespace, name = metadata["namespace"], metadata["name"]
            self._api.patch(PODS, name, body, namespace=namespace, subresource="status")
            logger.info("named node %s for pod %s/%s", node, namespace, name)
            return {}
        return hint.spec(self._read(pod, PODS), node)

    def _clear_nomination(self, pod: Object) -> Object | None:
        """Returns None if the pod has changed: its watch reports how."""
        metadata = pod["metadata"]
        version = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        body = {"metadata": version, "status": {"nominatedNodeName": None}}
        namespace, name = metadata["namespace"], metadata["name"]
        try:
            cleared = self._api.patch(PODS, name, body, namespace=namespace, subresource="status")
        except (Conflict, NotFound):
            return None
        logger.info("took the node's name back from pod %s/%s", namespace, name)
        return cleared

    def _lift_gate(self, pod: Object, spec: Mapping[str, Any] = NOTHING) -> Object | None:
        """Remove the gate, and merge `spec` into the pod's. Returns None if the pod was deleted,
        also if another pod has its name now: the server answers that with Invalid, as a UID is
        immutable. Raises Conflict and Invalid where the server, or an admission webhook, refuses
        although the pod exists."""
        metadata = pod["metadata"]
        try:
            lifted = self._api.patch(
                PODS,
                metadata["name"],
                gate_lifted(pod, spec),
                namespace=metadata["namespace"],
                patch_type=PatchType.STRATEGIC_MERGE,
            )
        except NotFound:
            return None
        except (Conflict, Invalid):
            if self._is_there(pod):
                raise
            return None
        logger.info("lifted the gate of pod %s/%s", metadata["namespace"], metadata["name"])
        return lifted

    def _is_there(self, pod: Object) -> bool:
        """Whether the pod itself has its name still."""
        try:
            return uid_of(self._read(pod, PODS)) == uid_of(pod)
        except NotFound:
            return False

    def _fence_claim(self, claim: Object) -> Answer:
        try:
            live = self._read(claim)
            if uid_of(live) != uid_of(claim):
                return Answer((live,))  # a write for the deleted claim gets a conflict
            term = f"{self._fence.term}.{next(self._fenced_claims)}"
            return Answer((self.write_term(live, term),))
        except NotFound:
            return Answer()
        except GcuError as error:
            return Answer(error=error, uncertain=(claim,))

    def _failed(self, stored: list[Object], claim: Object, error: GcuError) -> Answer:
        if isinstance(error, Conflict):
            with suppress(KubeError):  # the watch brings the claim a little later
                stored.append(self._read(claim))
        return Answer(tuple(stored), error=error)

    def _read(self, obj: Object, resource: Resource = RESOURCE_CLAIMS) -> Object:
        metadata = obj["metadata"]
        return self._api.get(resource, metadata["name"], namespace=metadata["namespace"])

    def _whole(self, claim: Object) -> Object:
        """All fields of that version of the claim, as they are written back. Raises Conflict if
        the server has another version."""
        if not is_in_use(claim):  # a claim in use was not decoded with all its fields
            return claim
        live = self._read(claim)
        if _version(live) != _version(claim):
            raise Conflict(f"claim {ClaimRef.of(claim)} has changed since the decision")
        return live

    def _add_metadata(
        self,
        claim: Object,
        *,
        finalizers: Sequence[str] = (),
        annotations: Mapping[str, str] = NOTHING,
    ) -> Object:
        metadata = dict(claim["metadata"])
        present = metadata.get("finalizers") or ()
        if not annotations and set(finalizers) <= set(present):
            return claim
        if claim["spec"]["devices"].get("config"):  # which JSON would change
            return self._api.add_metadata(
                RESOURCE_CLAIMS, claim, finalizers=finalizers, annotations=annotations
            )
        if finalizers:
            metadata["finalizers"] = [*present, *finalizers]
        if annotations:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
        return self._api.replace(RESOURCE_CLAIMS, claim | {"metadata": metadata})

    def _create_template(self, template: Object) -> Object:
        """Returns the stored template, whoever created it."""
        try:
            created = self._api.create(RESOURCE_CLAIM_TEMPLATES, template)
        except AlreadyExists:
            return self._read(template, RESOURCE_CLAIM_TEMPLATES)
        logger.info("created claim template %s", ClaimRef.of(created))
        return created

    def _delete_template(self, template: Object) -> None:
        metadata = template["metadata"]
        try:
            self._api.delete(
                RESOURCE_CLAIM_TEMPLATES,
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                # A person who removes our label owns the template.
                resource_version=metadata["resourceVersion"],
            )
        except (NotFound, Conflict) as error:
            logger.info("the claim template has changed: %s", error)
        else:
            logger.info("deleted claim template %s", ClaimRef.of(template))


def _version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])
