"""The writes: an allocation, its release, the leader's term, the gate of a pod. Claims are PUT with
the resourceVersion that was read, so that of two writers one meets a conflict."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count

from controller.write.commands import Answer
from dra_driver.kube.api import NOTHING, ObjectApi, PatchType
from dra_driver.kube.errors import Conflict, KubeError, NotFound, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claim import ClaimRef, Object, allocation, is_in_use, results
from dra_driver.model.errors import GcuError
from dra_driver.model.names import ANNOTATION_TERM, FINALIZER, SCHEDULING_GATE

logger = logging.getLogger(__name__)


class ClaimWriter:
    """Safe for several threads. `term` gives the name of the present term of leadership."""

    def __init__(self, api: ObjectApi, *, term: Callable[[], str] = str) -> None:
        self._api = api
        self._term = term
        self._marks = count(1)

    def allocate(
        self, planned: Sequence[Object], gated: Object | None, *, only_for: Object | None = None
    ) -> Answer:
        """Write all these allocations of one pod, then lift the gate of the pod `gated`. If
        `only_for` is given, that pod is read first, and nothing is written if it has changed."""
        if only_for is not None:
            try:
                live = self._read(only_for, PODS)
            except NotFound:
                return Answer(pod_changed=True)
            except GcuError as error:
                return Answer(error=error)
            if _version(live) != _version(only_for):
                return Answer(pod=live, pod_changed=True)
        stored: list[Object] = []
        for claim in planned:
            try:
                protected = self._protected(claim)
            except GcuError as error:
                return self._ended(stored, claim, error)
            try:
                stored.append(self._put_status(protected | {"status": claim["status"]}))
            except GcuError as error:
                return self._ended(stored, claim, error, uncertain=isinstance(error, Unavailable))
            devices = ", ".join(each.device for each in results(claim))
            logger.info("allocated %s to claim %s", devices, ClaimRef.of(claim))
        return self.lift_gate(gated, tuple(stored)) if gated else Answer(tuple(stored))

    def lift_gate(self, pod: Object, claims: tuple[Object, ...] = ()) -> Answer:
        """Let kube-scheduler look at the pod, unless that is another one by now."""
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
            return Answer(claims)  # there is no such pod any more
        except GcuError as error:
            return Answer(claims, error=error)
        logger.info("lifted the gate of pod %s/%s", metadata["namespace"], metadata["name"])
        return Answer(claims, lifted)

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
                stored.append(self._put_status(whole | {"status": status}))
            except NotFound:
                continue
            except GcuError as error:
                return self._ended(stored, claim, error)
            logger.info("released claim %s: %s", ClaimRef.of(claim), why)
        return Answer(tuple(stored))

    def settle(self, claim: Object) -> Answer:
        """Make sure that no earlier write of ours to the claim can still arrive."""
        try:
            live = self._read(claim)
            if live["metadata"]["uid"] != claim["metadata"]["uid"]:
                return Answer((live,))  # what was written for another one meets a conflict
            marked = self.fence(live, f"{self._term()}.{next(self._marks)}")
        except NotFound:
            return Answer()
        except GcuError as error:
            return Answer(error=error, uncertain=(claim,))
        return Answer((marked,))

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

    def _ended(
        self, stored: list[Object], claim: Object, error: GcuError, *, uncertain: bool = False
    ) -> Answer:
        if uncertain:
            settled = self.settle(claim)
            return replace(settled, objects=(*stored, *settled.objects), error=error)
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

    def _put_status(self, claim: Object) -> Object:
        return self._api.replace(RESOURCE_CLAIMS, claim, subresource="status")

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


def _version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])
