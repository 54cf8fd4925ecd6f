"""What there is of the driver in a cluster, as far as the user may read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.preflight import OLDEST, OLDEST_VISIBLE
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    EVENTS,
    LEASES,
    RESOURCE_CLAIM_TEMPLATES,
    Resource,
)
from dra_driver.kube.scheduling_gate import has_gate
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from kubectl_gcu.cluster.driver_pods import CHART, driver_pods, environment
from kubectl_gcu.cluster.pod_events import NOT_ALLOCATED
from kubectl_gcu.cluster.state import ClusterState, read_cluster
from kubectl_gcu.scheduling.packing import is_for_scheduler

LEASE: Final = "gcu-dra-controller"
FAILED_PREPARE: Final = "FailedPrepareDynamicResources"  # kubelet 1.36.3, package events
OF_CHART: Final = f"app.kubernetes.io/name={CHART}"

_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
CLUSTER_ROLES: Final = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS: Final = Resource(
    _RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False
)
POLICIES: Final = Resource(
    _ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False
)
POLICY_BINDINGS: Final = Resource(
    _ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False
)
MUTATING_POLICIES: Final = Resource(
    _ADMISSION, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", False
)
MUTATING_POLICY_BINDINGS: Final = Resource(
    _ADMISSION, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", False
)
WEBHOOKS: Final = Resource(
    _ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False
)
OLDEST_POLICIES: Final = (1, 30)


class _ReadKind(NamedTuple):
    """`oldest` is the first version that may serve it; `unseen` is what is not found without it."""

    selector: str
    oldest: tuple[int, int]
    unseen: str


_NO_RIGHTS: Final = "missing rights of the driver are not found"
_NO_POLICIES: Final = "missing policies are not found"
# RBAC is read whole: roles that somebody else made for the driver's accounts count as well.
_OTHERS: Final[Mapping[Resource, _ReadKind]] = {
    DEVICE_CLASSES: _ReadKind("", OLDEST, "a missing one is not found"),
    CLUSTER_ROLES: _ReadKind("", (1, 0), _NO_RIGHTS),
    CLUSTER_ROLE_BINDINGS: _ReadKind("", (1, 0), _NO_RIGHTS),
    POLICIES: _ReadKind(OF_CHART, OLDEST_POLICIES, _NO_POLICIES),
    POLICY_BINDINGS: _ReadKind(OF_CHART, OLDEST_POLICIES, _NO_POLICIES),
    MUTATING_POLICIES: _ReadKind(OF_CHART, OLDEST_VISIBLE, _NO_POLICIES),
    MUTATING_POLICY_BINDINGS: _ReadKind(OF_CHART, OLDEST_VISIBLE, _NO_POLICIES),
    WEBHOOKS: _ReadKind(
        OF_CHART, OLDEST, "a webhook of another version of Kubernetes is not found"
    ),
}
_TEMPLATES: Final = _ReadKind("", OLDEST, "those that another allocator would refuse are not found")
_REPORTS: Final = (f"reportingController={DRIVER}/agent", f"reason={FAILED_PREPARE}")


@dataclass(frozen=True, slots=True)
class Installation:
    """`leases` are those of the controllers' namespaces, None where there is none. `objects` has
    further kinds, but those that the user may not read, or the server does not serve. `unread` has
    a sentence for each kind that the user may not read."""

    state: ClusterState
    server: ServerVersion
    leases: Mapping[str, Object | None] = field(default_factory=dict)
    objects: Mapping[Resource, tuple[Object, ...]] = field(default_factory=dict)
    events: tuple[Object, ...] = ()
    unread: tuple[str, ...] = ()

    def pods(self, component: str) -> list[Object]:
        """`driver_pods` of that component."""
        return driver_pods(self.state.pods, component)

    @property
    def for_scheduler(self) -> bool:
        """Whether kube-scheduler allocates."""
        return is_for_scheduler(self.state.pods, self.state.slices)

    @property
    def labels_nodes(self) -> bool:
        """Whether agents label their Nodes, by their environment."""
        agents = map(environment, self.pods("agent"))
        return any(each.get("GCU_NODE_LABELS") == "true" for each in agents)

    def unready_nodes(self) -> frozenset[str]:
        """Nodes with agents, but without a ready one. What such agents write may be old, or
        missing."""
        pods = self.pods("agent")
        ready = {str(pod["spec"].get("nodeName")) for pod in pods if is_ready(pod)}
        return frozenset(str(pod["spec"].get("nodeName")) for pod in pods) - ready


def read_installation(api: Api, namespace: str, *, with_templates: bool = False) -> Installation:
    """`with_templates`: also ResourceClaimTemplates. Raises KubeError where the server does not
    answer."""
    version = api.server_version()
    state = read_cluster(api, namespace)
    controllers = Installation(state, version).pods("controller")
    unread: list[str] = []
    leases = {
        where: lease
        for where in sorted({pod["metadata"]["namespace"] for pod in controllers})
        for lease in _lease(api, where, unread)
    }
    kinds = {**_OTHERS, **({RESOURCE_CLAIM_TEMPLATES: _TEMPLATES} if with_templates else {})}
    objects = {
        resource: items
        for resource, kind in kinds.items()
        if (version.major, version.minor) >= kind.oldest
        for items in _objects(api, resource, kind, unread)
    }
    selectors: tuple[str, ...] = _REPORTS
    if any(map(has_gate, state.pods)):
        selectors = (*_REPORTS, f"reason={NOT_ALLOCATED}")
    events = tuple(_reports(api, selectors, unread))
    return Installation(state, version, leases, objects, events, tuple(unread))


def _lease(api: Api, namespace: str, unread: list[str]) -> Iterator[Object | None]:
    try:
        yield api.get(LEASES, LEASE, namespace=namespace)
    except NotFound:
        yield None
    except Forbidden:
        unread.append(f"you may not get the Lease {namespace}/{LEASE}: a leader is not looked for")


def _objects(
    api: Api, resource: Resource, kind: _ReadKind, unread: list[str]
) -> Iterator[tuple[Object, ...]]:
    try:
        yield api.list(resource, label_selector=kind.selector).items
    except NotFound:  # DRA and policies can be switched off
        return
    except Forbidden:
        unread.append(f"you may not list {resource.plural}: {kind.unseen}")


def _reports(api: Api, selectors: Sequence[str], unread: list[str]) -> list[Object]:
    try:
        return [
            event
            for selector in selectors
            for event in api.list(EVENTS, field_selector=selector).items
        ]
    except Forbidden:
        unread.append("you may not list events in all namespaces: what agents report is not seen")
        return []


def is_of_chart(obj: Object) -> bool:
    """Whether the chart made the object."""
    return bool((obj["metadata"].get("labels") or {}).get("app.kubernetes.io/name") == CHART)


def is_ready(obj: Object) -> bool:
    """Whether a Pod or a Node is."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
