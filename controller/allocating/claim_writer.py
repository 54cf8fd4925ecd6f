"""Executes the commands that write allocations, in the threads of the dispatcher's pool.

A claim is PUT with the resourceVersion that was read, so that of two writers one gets a conflict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count

from controller.allocating.commands import FenceClaim, ReleaseAllocation, WriteAllocation
from controller.cache.keys import uid_of
from controller.cache.pods import has_our_gate
from controller.leaderelection.fence import Fence, fenced
from controller.write.commands import Answer, Command
from controller.write.writer import Writer
from dra_driver.kube.api import NOTHING, ObjectApi
from dra_driver.kube.errors import Conflict, KubeError, NotFound, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import ClaimRef, Object, allocation, is_in_use, results
from dra_driver.model.errors import GcuError
from dra_driver.model.names import ANNOTATION_TERM, FINALIZER

logger = logging.getLogger(__name__)


class ClaimWriter:
    """Safe for several threads. Every write raises NotLeader when `fence` is closed. `others`
    executes all commands that write no allocation."""

    def __init__(self, api: ObjectApi, fence: Fence, others: Writer) -> None:
        self._api = fenced(api, fence)
        self._fence = fence
        self._others = others
        self._fenced_claims = count(1)

    def begin(self, command: Command) -> Callable[[], Answer]:
        """Write the allocation of a pod whose gate keeps kube-scheduler away. The result lifts the
        gate, or executes any other command. Neither raises: the answer has the error."""
        match command:
            case WriteAllocation() if command.lifts_gate and has_our_gate(command.pod):
                return partial(self._lift_gate, command.pod, self._execute(command))
            case WriteAllocation() | ReleaseAllocation() | FenceClaim():
                return partial(self._execute, command)
        return self._others.begin(command)

    def _execute(self, command: WriteAllocation | ReleaseAllocation | FenceClaim) -> Answer:
        """After an unforeseen error nobody knows which claims of an allocation were written: all
        of them are uncertain."""
        try:
            match command:
                case WriteAllocation():
                    return self._write_allocation(command)
                case ReleaseAllocation():
                    return self.release(command.claims, command.why)
                case FenceClaim():
                    return self._fence_claim(command.claims[0])
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
        return self.allocate(command.claims)

    def _lift_gate(self, pod: Object, written: Answer) -> Answer:
        if written.error is not None or written.pod_changed:
            return written
        try:
            return replace(written, pod=self._others.lift_gate(pod))
        except Exception as error:  # noqa: BLE001 - the deciding thread sets the object aside
            return replace(written, error=error)

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

    def _read(self, obj: Object, resource: Resource = RESOURCE_CLAIMS) -> Object:
        metadata = obj["metadata"]
        return self._api.get(resource, metadata["name"], namespace=metadata["namespace"])


def _version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])
