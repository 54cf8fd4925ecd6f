"""The writes: an allocation, and its release. Always PUT with the resourceVersion that was read,
so that of two writers one meets a conflict."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import uuid4

from controller.allocator.request import Wanted
from controller.allocator.results import allocation_status
from controller.allocator.search import Grant
from dra_driver.kube.api import NOTHING, Api
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claim import ClaimRef, Object
from dra_driver.model.names import ANNOTATION_TERM, FINALIZER

logger = logging.getLogger(__name__)


class ClaimWriter:
    """Raises KubeError: Conflict where the claim is not as it was read."""

    def __init__(self, api: Api, *, now: Callable[[], datetime]) -> None:
        self._api = api
        self._now = now

    def read(self, claim: Object) -> Object:
        """The claim as it is now."""
        metadata = claim["metadata"]
        return self._api.get(RESOURCE_CLAIMS, metadata["name"], namespace=metadata["namespace"])

    def allocate(
        self, wanted: Wanted, grants: Sequence[Grant], node: str, classes: Mapping[str, Object]
    ) -> Object:
        """Write the allocation, without a reservation: that one is kube-scheduler's to add. The
        finalizer comes first, as a claim with an allocation must never vanish."""
        claim = self._protected(wanted.claim)
        allocation = allocation_status(
            wanted,
            grants,
            node,
            classes,
            timestamp=self._now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            new_share_id=lambda: str(uuid4()),
        )
        status = (claim.get("status") or {}) | {"allocation": allocation}
        stored = self._api.replace(
            RESOURCE_CLAIMS, claim | {"status": status}, subresource="status"
        )
        devices = ", ".join(grant.device.id.name for grant in grants)
        logger.info("allocated %s of node %s to claim %s", devices, node, wanted.ref)
        return stored

    def _protected(self, claim: Object) -> Object:
        if FINALIZER in (claim["metadata"].get("finalizers") or ()):
            return claim
        return self._add(claim, finalizers=(FINALIZER,))

    def mark(self, claim: Object, term: str) -> Object:
        """Write the leader's term into the claim, so that whatever was to be written over the
        version that was read meets a conflict."""
        return self._add(claim, annotations={ANNOTATION_TERM: term})

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

    def release(self, claim: Object, why: str) -> Object:
        """Take the allocation away. The caller has made sure that nobody reserved the claim; a
        reservation in the meantime is a conflict."""
        status = {
            key: value
            for key, value in (claim.get("status") or {}).items()
            if key not in {"allocation", "devices", "reservedFor"}
        }
        stored = self._api.replace(
            RESOURCE_CLAIMS, claim | {"status": status}, subresource="status"
        )
        logger.info("released claim %s: %s", ClaimRef.of(claim), why)
        return stored
