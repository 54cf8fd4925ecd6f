"""Sets the scheduling gate on a new pod (ADR 9).

Where the controller allocates, any pod with claims has it in namespaces that the webhook's
configuration selects. From Kubernetes 1.36 on the chart's MutatingAdmissionPolicy does the same
(policy-scheduling-gate.yaml). Where kube-scheduler allocates, pods have it whose node is named.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from controller.allocator.ownership import forms
from controller.cache.nodes import is_tied
from controller.cache.pods import DEFAULT_SCHEDULER
from controller.webhook.review import Operation
from dra_driver.asks.limits import limit_names
from dra_driver.asks.templates import devices_named
from dra_driver.kube.api import ObjectApi
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.names import CLASS_LIMIT_PREFIX, RESOURCE_WHOLE, SCHEDULING_GATE

logger = logging.getLogger(__name__)

_TEMPLATE_LIFE: Final = 30.0  # seconds; a template never changes, and another may have its name
_MOST_TEMPLATES: Final = 1024


def set_gate(pod: Object) -> list[Operation]:
    """The patch for a new pod; nothing for one without claims, with the gate, or that is bound."""
    return _gate(pod["spec"]) if pod["spec"].get("resourceClaims") else []


def _gate(spec: Mapping[str, Any]) -> list[Operation]:
    """The patch; nothing for a pod with the gate, or that is bound: an API server refuses a gate on
    such a pod."""
    gates = list(spec.get("schedulingGates") or ())
    if spec.get("nodeName"):
        return []
    if any(each["name"] == SCHEDULING_GATE for each in gates):
        return []
    value = [*gates, {"name": SCHEDULING_GATE}]
    return [{"op": "add", "path": "/spec/schedulingGates", "value": value}]


class NominationGate:
    """For pods with a choice of nodes and a request for one of the DeviceClasses `classes`, or a
    limit for which kube-scheduler makes one. What cannot be read is not gated: kube-scheduler
    serves such a pod, too, only packs worse. While `has_leader` is false no pod is gated, because
    nobody would lift its gate.

    `schedulers` are the names of those that are served; empty for all. `clock` returns seconds.
    """

    def __init__(
        self,
        api: ObjectApi,
        classes: Collection[str],
        schedulers: Collection[str],
        has_leader: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._classes = classes
        self._limits = {RESOURCE_WHOLE, *(f"{CLASS_LIMIT_PREFIX}{name}" for name in classes)}
        self._schedulers = schedulers
        self._has_leader = has_leader
        self._clock = clock
        self._templates: OrderedDict[tuple[str, str], tuple[float, bool]] = OrderedDict()

    def __call__(self, pod: Object) -> list[Operation]:
        """The patch for a new pod."""
        patch = _gate(pod["spec"])
        if not patch or not self._has_leader() or is_tied(pod["spec"]):
            return []
        scheduler = pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER
        if self._schedulers and scheduler not in self._schedulers:
            return []
        try:
            return patch if self._asks(pod) else []
        except KubeError as error:
            logger.warning("a pod of %s is not gated: %s", pod["metadata"]["namespace"], error)
            return []

    def _asks(self, pod: Object) -> bool:
        if limit_names(pod, self._limits.__contains__):
            return True
        namespace = pod["metadata"]["namespace"]
        for reference in pod["spec"].get("resourceClaims") or ():
            template = reference.get("resourceClaimTemplateName")
            name = template or reference.get("resourceClaimName")
            try:
                if self._is_asked(namespace, str(name), is_template=bool(template)):
                    return True
            except NotFound:
                continue
        return False

    def _is_asked(self, namespace: str, name: str, *, is_template: bool) -> bool:
        """Whether devices are still to be allocated. Raises KubeError."""
        if not is_template:
            claim = self._api.get(RESOURCE_CLAIMS, name, namespace=namespace)
            return allocation(claim) is None and self._names_class(claim["spec"])
        if devices_named(name) is not None:
            return True  # made for limits, if need be after the pod
        until, asks = self._templates.get((namespace, name), (0.0, False))
        if self._clock() >= until:
            template = self._api.get(RESOURCE_CLAIM_TEMPLATES, name, namespace=namespace)
            asks = self._names_class(template["spec"]["spec"])
            self._templates[namespace, name] = self._clock() + _TEMPLATE_LIFE, asks
            while len(self._templates) > _MOST_TEMPLATES:
                self._templates.popitem(last=False)
        return asks

    def _names_class(self, spec: Object) -> bool:
        """Whether a request wants a device for itself: one with administrative access holds none,
        on every node alike."""
        return any(
            form["deviceClassName"] in self._classes and not form.get("adminAccess")
            for _, form in forms(spec.get("devices") or {})
        )
