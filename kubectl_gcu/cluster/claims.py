"""The claims of a pod, among all that were read. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from dra_driver.model.claims.claim import Object, claim_names


def claims_of(pod: Object, claims: Mapping[str, Object]) -> dict[str, Object | None]:
    """The pod's claims by their names in the pod, None where there is no such claim. `claims` are
    by ``namespace/name``."""
    namespace = pod["metadata"]["namespace"]
    return {
        reference: claims.get(f"{namespace}/{name}") if name else None
        for reference, name in claim_names(pod).items()
    }
