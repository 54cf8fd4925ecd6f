"""Claims and pods as users write them."""

from __future__ import annotations

from typing import Any

from dra_driver.model.names import CLASS_WHOLE
from tests.cluster.workloads import pod

Object = dict[str, Any]


def claim(name: str, namespace: str, *, count: int = 1, **devices: Any) -> Object:
    """A ResourceClaim for whole cards; `devices` are further fields of spec.devices."""
    exactly: Object = {"deviceClassName": CLASS_WHOLE, "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [{"name": "gcu", "exactly": exactly}], **devices}},
    }


def pod_with(claim_name: str, namespace: str, *, name: str = "", **spec: Any) -> Object:
    """A pod that uses the claim of that name, and is called so unless `name` says otherwise."""
    made = pod(name or claim_name, namespace, **spec)
    made["spec"]["terminationGracePeriodSeconds"] = 1
    made["spec"]["resourceClaims"] = [{"name": "gcu", "resourceClaimName": claim_name}]
    for container in made["spec"]["containers"]:
        container["resources"] = {"claims": [{"name": "gcu"}]}
    return made
