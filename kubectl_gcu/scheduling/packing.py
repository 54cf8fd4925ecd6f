"""How the controller packs, by the environment of its pod."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from controller.allocator.order import Policy
from controller.cache import pods
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing

_LABELS: Final = {
    "app.kubernetes.io/name": "gcu-dra-driver",
    "app.kubernetes.io/component": "controller",
}
_VARIABLES: Final = ("GCU_PACK_NODES", "GCU_PACK_CARDS")  # the chart's controller/deployment.yaml


def configured_packing(found: Iterable[Object]) -> Policy | None:
    """That of the newest controller among the pods, which leads once an upgrade has ended; None
    where no controller is among them, or its environment does not say it."""
    controllers = [
        pod
        for pod in found
        if _LABELS.items() <= (pod["metadata"].get("labels") or {}).items()
        and not pods.is_done(pod)
        and not pods.is_deleting(pod)
    ]
    if not controllers:
        return None
    newest = max(controllers, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or ""))
    environment = {
        each["name"]: each.get("value")
        for container in newest["spec"]["containers"]
        for each in container.get("env") or ()
    }
    try:
        return Policy(*(Packing(environment.get(name) or "") for name in _VARIABLES))
    except ValueError:
        return None


def packing_text(policy: Policy | None) -> str:
    """For people."""
    if policy is None:
        return "packing: the chart's defaults, as no pod of the controller says what it has"
    return f"packing: nodes {policy.nodes}, cards {policy.cards}"
