"""Sets the scheduling gate on a new pod with claims (ADR 9). Pure.

From Kubernetes 1.36 on the chart's MutatingAdmissionPolicy does the same
(policy-scheduling-gate.yaml). Which namespaces are meant says the webhook's configuration.
"""

from __future__ import annotations

from controller.webhook.review import Operation
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE


def set_gate(pod: Object) -> list[Operation]:
    """The patch for a new pod; nothing for a pod without claims, with the gate, or that is bound:
    an API server refuses a gate on such a pod."""
    spec = pod["spec"]
    gates = list(spec.get("schedulingGates") or ())
    if not spec.get("resourceClaims") or spec.get("nodeName"):
        return []
    if any(each["name"] == SCHEDULING_GATE for each in gates):
        return []
    value = [*gates, {"name": SCHEDULING_GATE}]
    return [{"op": "add", "path": "/spec/schedulingGates", "value": value}]
