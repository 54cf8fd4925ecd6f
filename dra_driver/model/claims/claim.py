"""A ResourceClaim (resource.k8s.io/v1), read through small views over the plain dict.

API objects stay plain dicts everywhere, because typed models drop the fields they do not know
on read-modify-write. These views read; nothing here alters a claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dra_driver.model.claims.amounts import by_short_name, configured_consumption
from dra_driver.model.names import DRIVER

Object = dict[str, Any]
"""An object of the API as a dict."""

ReadOnlyObject = Mapping[str, Any]
"""An object of the API that several readers share: nobody alters it. It may be stored in another
form than as a dict."""


class ClaimRef(msgspec.Struct, frozen=True, order=True):
    """A claim's identity. The name alone is not one: a claim deleted and created again under
    the same name is another claim."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, claim: Mapping[str, Any]) -> ClaimRef:
        metadata = claim["metadata"]
        return cls(metadata.get("namespace", ""), metadata["name"], metadata["uid"])

    @property
    def title(self) -> str:
        """For people."""
        return f"claim {self}"

    @property
    def renewal(self) -> str:
        """What a person can do to have its devices chosen anew."""
        return "delete the claim and let it be allocated anew"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Result(msgspec.Struct, frozen=True):
    """One entry of ``status.allocation.devices.results``.

    ``request`` is the request's name, or ``request/subrequest`` where a first-available request
    was served. ``consumed`` maps a capacity (`capacity_name`) to the quantity as written, and is
    empty for a device that is not shared. ``share_id`` is None for such a device, and for all
    devices where the API server drops it (before Kubernetes 1.36).
    """

    request: str
    driver: str
    pool: str
    device: str
    share_id: str | None
    consumed: Mapping[str, str]
    admin_access: bool

    @property
    def main_request(self) -> str:
        """The request's name as a container's ``resources.claims[].request`` writes it."""
        return self.request.partition("/")[0]


def allocation(claim: Mapping[str, Any]) -> Object | None:
    """The claim's ``status.allocation``, or None while it is unallocated."""
    found: Object | None = (claim.get("status") or {}).get("allocation")
    return found


def results(claim: Mapping[str, Any]) -> tuple[Result, ...]:
    """What was allocated to the claim of this driver's devices."""
    return tuple(result for result in all_results(claim) if result.driver == DRIVER)


def all_results(claim: Mapping[str, Any]) -> Iterator[Result]:
    """What was allocated to the claim, of every driver."""
    devices = (allocation(claim) or {}).get("devices") or {}
    config = devices.get("config") or ()
    for entry in devices.get("results") or ():
        yield Result(
            request=entry["request"],
            driver=entry["driver"],
            pool=entry["pool"],
            device=entry["device"],
            share_id=entry.get("shareID"),
            consumed=by_short_name(
                entry.get("consumedCapacity") or configured_consumption(config, entry)
            ),
            admin_access=bool(entry.get("adminAccess", False)),
        )


def reserved_for(claim: Mapping[str, Any]) -> tuple[Object, ...]:
    """The consumers in ``status.reservedFor``: dicts with resource, name and uid."""
    return tuple((claim.get("status") or {}).get("reservedFor") or ())


def allocated_at(claim: Mapping[str, Any]) -> datetime | None:
    """When the claim was allocated, in whole seconds; None if that is not known.

    Before Kubernetes 1.36 the server drops ``allocationTimestamp``. Then it is the time at which
    who wrote the allocation wrote the status last, which the server records.
    """
    found = allocation(claim)
    if found is None:
        return None
    written = [
        found.get("allocationTimestamp"),
        *(each.get("time") for each in allocation_owners(claim)),
    ]
    return next((datetime.fromisoformat(each) for each in written if each), None)


def allocation_owners(claim: Mapping[str, Any]) -> Iterator[Object]:
    """The entries of ``managedFields`` of those who wrote the present allocation."""
    for entry in claim["metadata"].get("managedFields") or ():
        fields = (entry.get("fieldsV1") or {}).get("f:status") or {}
        if entry.get("subresource") == "status" and "f:allocation" in fields:
            yield entry


def is_in_use(claim: Mapping[str, Any]) -> bool:
    """Whether somebody has reserved the claim's allocation."""
    return allocation(claim) is not None and bool(reserved_for(claim))


def made_for(claim: Mapping[str, Any]) -> str:
    """The UID of the pod for which the claim was made from a template; empty where it was not."""
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and (owner["apiVersion"], owner["kind"]) == ("v1", "Pod"):
            return str(owner["uid"])
    return ""


def pod_claim_name(claim: Mapping[str, Any]) -> str:
    """The name in ``spec.resourceClaims`` of the pod for which the claim was made from a template;
    empty where it was not."""
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get("resource.kubernetes.io/pod-claim-name", ""))


def claim_names(pod: Mapping[str, Any]) -> dict[str, str | None]:
    """By the names in a Pod's ``spec.resourceClaims`` the names of ResourceClaims; None while a
    claim is yet to be made from its template. A reference that needs no claim is left out."""
    made = {
        each["name"]: each.get("resourceClaimName")
        for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    found: dict[str, str | None] = {}
    for reference in pod["spec"].get("resourceClaims") or ():
        name = reference["name"]
        claim = reference.get("resourceClaimName") or made.get(name)
        if claim is not None or name not in made:
            found[name] = claim
    return found
