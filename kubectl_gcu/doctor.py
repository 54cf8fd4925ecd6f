"""``kubectl gcu doctor``: what is wrong with the driver and its cards, as the API server knows it.

Each check gives lines of one form: where, what, and the remedy. What only a node knows (its
journal, its CDI files, its instances) its agent compares by itself, and reports as events and
taints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from dra_driver.kube.api import Api
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.preflight import OLDEST
from dra_driver.kube.resources import DEVICE_CLASSES as CLASSES_RESOURCE
from dra_driver.kube.resources import LEASES, PODS
from dra_driver.model.claims.claim import Object, reserved_for, results
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.names import DEVICE_CLASSES, RESOURCE_COUNT
from kubectl_gcu.cluster_state import ClusterState, read_cluster
from kubectl_gcu.inventory import CardView, NodeView, ServedBy
from kubectl_gcu.steps import waiting_containers

_NAME: Final = "gcu-dra-driver"  # app.kubernetes.io/name of the chart's pods
_LEASE: Final = "gcu-dra-controller"
_LATE: Final = 2  # lease durations
_OWN_LIMITS: Final = {RESOURCE_COUNT, *RESOURCES.values()}


@dataclass(frozen=True, slots=True)
class Finding:
    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.remedy}"


@dataclass(frozen=True, slots=True)
class Installation:
    """What there is of the driver beside its cards. `missing_classes` are the names of
    DeviceClasses that do not exist; `leases` are those of the controllers' namespaces, None where
    there is none. `unread` has a sentence for each of these that the user may not read."""

    state: ClusterState
    missing_classes: tuple[str, ...] = ()
    leases: Mapping[str, Object | None] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def pods(self, component: str) -> list[Object]:
        """The driver's pods of that component, ``agent`` or ``controller``."""
        wanted = {"app.kubernetes.io/name": _NAME, "app.kubernetes.io/component": component}
        return [
            pod
            for pod in self.state.pods
            if wanted.items() <= (pod["metadata"].get("labels") or {}).items()
        ]


def read_installation(api: Api, namespace: str) -> Installation:
    """Raises KubeError where the server does not answer."""
    state = read_cluster(api, namespace)
    version = api.server_version()
    found = Installation(state)
    leases: dict[str, Object | None] = {}
    missing: tuple[str, ...] = ()
    unread = []
    for where in sorted({pod["metadata"]["namespace"] for pod in found.pods("controller")}):
        try:
            leases[where] = api.get(LEASES, _LEASE, namespace=where)
        except NotFound:
            leases[where] = None
        except Forbidden:
            unread.append(f"you may not get the Lease {where}/{_LEASE}: a leader is not looked for")
    if (version.major, version.minor) >= OLDEST:
        try:
            classes = {each["metadata"]["name"] for each in api.list(CLASSES_RESOURCE).items}
            missing = tuple(each for each in DEVICE_CLASSES if each not in classes)
        except NotFound:  # DRA can be switched off
            pass
        except Forbidden:
            unread.append("you may not list deviceclasses: a missing one is not found")
    return Installation(state, missing, leases, tuple(unread))


def findings(found: Installation, nodes: list[NodeView], now: datetime) -> Iterator[Finding]:
    """`nodes` is the inventory."""
    yield from _controllers(found, now)
    yield from _agents(found, nodes)
    by_claims = any(node.served_by is ServedBy.CLAIMS for node in nodes)
    for name in found.missing_classes if by_claims else ():
        yield Finding(
            f"DeviceClass {name}",
            "it does not exist, so no claim can name it",
            "Run helm upgrade again.",
        )
    for node in nodes:
        for card in node.cards:
            yield from _card(f"node {node.name}, card {card.address}", card)
    yield from _other_plugins(found, nodes)
    yield from _claims(found)


def _controllers(found: Installation, now: datetime) -> Iterator[Finding]:
    pods = found.pods("controller")
    if not pods and PODS not in found.state.missing:
        yield Finding(
            "controller",
            "it has no pod, and without it nothing is allocated",
            "Install the chart, or scale its Deployment up.",
        )
    yield from (_not_ready(pod) for pod in pods if not _is_ready(pod))
    for namespace, lease in found.leases.items():
        where = f"Lease {namespace}/{_LEASE}"
        if lease is None:
            yield Finding(
                where, "it is not there: no controller has ever led", "See the controllers' logs."
            )
        elif (late := _seconds_late(lease["spec"], now)) > 0:
            yield Finding(
                where,
                f"no controller has led for {late:.0f} s",
                "See the controllers' logs; nothing is allocated meanwhile.",
            )


def _seconds_late(spec: Mapping[str, Any], now: datetime) -> float:
    """How long ago the lease was renewed, if that is too long; 0 if it is not."""
    renewed = str(spec.get("renewTime") or "")
    if not renewed or not spec.get("holderIdentity"):
        return 0.0 if spec.get("holderIdentity") else 1.0
    age = (now - datetime.fromisoformat(renewed).astimezone(UTC)).total_seconds()
    return age if age > _LATE * float(spec.get("leaseDurationSeconds") or 15) else 0.0


def _agents(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    pods = found.pods("agent")
    if not pods and PODS not in found.state.missing:
        yield Finding(
            "agent",
            "no node runs one, so no card is offered",
            "Label the nodes that have GCUs: kubectl label node NODE enflame.com/gcushare=true, or "
            "set agent.nodeSelector.",
        )
        return
    yield from (_not_ready(pod) for pod in pods if not _is_ready(pod))
    served = {node.name for node in nodes}
    running = {str(pod["spec"].get("nodeName") or "") for pod in pods}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and node not in served and _is_ready(pod):
            yield Finding(f"node {node}", "its agent is ready and offers no card", _see_log(pod))
    for name in sorted(served - running) if pods else ():
        yield Finding(
            f"node {name}",
            "its cards are offered, and no agent runs there: pods with GCUs neither start nor end",
            "See why the DaemonSet of the agent has no pod there (labels, taints).",
        )


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def _not_ready(pod: Object) -> Finding:
    metadata, status = pod["metadata"], pod.get("status") or {}
    where = f"pod {metadata['namespace']}/{metadata['name']}"
    if node := pod["spec"].get("nodeName"):
        where += f" on node {node}"
    reasons = [reason for _, reason in waiting_containers(pod) if reason]
    why = ", ".join(reasons) or status.get("phase", "Unknown")
    return Finding(where, f"it is not ready ({why})", _see_log(pod))


def _see_log(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"See kubectl logs --namespace {metadata['namespace']} {metadata['name']}."


def _card(where: str, card: CardView) -> Iterator[Finding]:
    for problem in card.problems:
        held = ", ".join(sorted({each.claim or str(*each.pods[:1]) for each in card.holders}))
        holders = f"; held by {held}" if held else ""
        yield Finding(
            where, f"{problem}{holders}", "docs/user/health.md says what it means and what to do."
        )
    modes = {each.mode for each in card.holders if not each.admin}
    if len(modes) > 1 or (card.mode and card.total and card.used > card.total):
        claims = ", ".join(each.claim for each in card.holders if not each.admin)
        yield Finding(
            where,
            f"more is allocated than there is: {card.used} of {card.total}, by {claims}",
            "Delete one of these claims with its pods, and remove what tolerates the taint "
            "gcu.enflame.com/allocated-by.",
        )


def _other_plugins(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    by_claims = {node.name for node in nodes if node.served_by is ServedBy.CLAIMS}
    for node in found.state.nodes:
        name = node["metadata"]["name"]
        offered = {
            resource
            for resource, amount in ((node.get("status") or {}).get("allocatable") or {}).items()
            if resource.startswith("enflame.com/") and amount != "0"
        }
        own = {RESOURCE_COUNT} if name in by_claims else _OWN_LIMITS
        if others := sorted(offered - own):
            yield Finding(
                f"node {name}",
                f"another device plugin offers {', '.join(others)} of the same cards",
                "Uninstall it: two programs that do not know of each other give one card twice.",
            )


def _claims(found: Installation) -> Iterator[Finding]:
    if PODS in found.state.missing:
        return
    alive = {pod["metadata"]["uid"] for pod in found.state.pods}
    for claim in found.state.claims:
        gone = [each["name"] for each in reserved_for(claim) if each["uid"] not in alive]
        if results(claim) and gone:
            name = f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
            yield Finding(
                f"claim {name}",
                f"it is reserved for {', '.join(gone)}, which is gone",
                "kube-controller-manager removes the reservation; if it stays, see its log.",
            )
