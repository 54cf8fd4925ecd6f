"""The driver's own pods: controllers, the Lease, agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from controller.cache.keys import full_name
from controller.cache.pods import is_deleting
from dra_driver.kube.resources import PODS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import LEASE, Installation, is_ready
from kubectl_gcu.cluster.pod_events import event_time
from kubectl_gcu.cluster.pod_status import waiting_containers
from kubectl_gcu.inventory.views import NodeView

_LATE: Final = 2  # lease durations
_NOT_SERVING, _SERVING = "GcuNotServing", "GcuServing"

NO_CONTROLLER: Final = Check(
    "no-controller",
    "no pod of the controller runs: nothing is allocated, or, where kube-scheduler allocates, pods "
    "with new limits get no claim",
)
NOT_READY: Final = Check(
    "pod-not-ready",
    "a pod of the driver is not ready; an agent's own event says why. What an agent publishes and "
    "reports of its node is not looked at meanwhile",
)
NO_LEASE: Final = Check("no-lease", "no controller has ever led")
NOBODY_LEADS: Final = Check("nobody-leads", "the Lease was not renewed for twice its duration")
NO_AGENT: Final = Check("no-agent", "no node runs an agent")
NO_CARDS: Final = Check("no-cards", "an agent is ready and offers no card")
CARDS_WITHOUT_AGENT: Final = Check(
    "cards-without-agent", "the cards of a node are offered, and no agent runs there"
)
NODE_NOT_READY: Final = Check("node-not-ready", "the kubelet of a node with cards does not report")


def controllers(found: Installation, now: datetime) -> Iterator[Finding]:
    """Pods of the controller, and whether one of them leads."""
    pods = found.pods("controller")
    if not pods and PODS not in found.state.missing:
        yield NO_CONTROLLER.finding(
            "controller",
            f"it has no pod, and without it {_lacking(found)}",
            "Install the chart, or scale its Deployment up.",
        )
    yield from (_not_ready(pod) for pod in pods if _is_found_unready(pod))
    for namespace, lease in found.leases.items():
        where = f"Lease {namespace}/{LEASE}"
        if lease is None:
            yield NO_LEASE.finding(
                where, "it is not there: no controller has ever led", "See the controllers' logs."
            )
        elif (late := _seconds_late(lease["spec"], now)) > 0:
            yield NOBODY_LEADS.finding(
                where,
                f"no controller has led for {late:.0f} s",
                f"See the controllers' logs; meanwhile {_lacking(found)}.",
            )


def has_leader(found: Installation, now: datetime) -> bool:
    """Whether a controller leads, as far as the user may read the Lease."""
    if not (found.leases and found.pods("controller")):
        return bool(found.pods("controller"))
    return any(lease and not _seconds_late(lease["spec"], now) for lease in found.leases.values())


def _lacking(found: Installation) -> str:
    """What does not happen while no controller leads."""
    if found.for_scheduler:
        return (
            "pods with new limits get no claim; kube-scheduler allocates as before, and chooses "
            "nodes alone"
        )
    return "nothing is allocated"


def _seconds_late(spec: Mapping[str, Any], now: datetime) -> float:
    """How long ago the lease was renewed or given back, if that is too long; 0 if it is not."""
    renewed = str(spec.get("renewTime") or "")
    if not renewed:
        return 0.0 if spec.get("holderIdentity") else 1.0
    age = (now - datetime.fromisoformat(renewed).astimezone(UTC)).total_seconds()
    if not spec.get("holderIdentity"):
        return max(age, 1.0)
    return age if age > _LATE * float(spec.get("leaseDurationSeconds") or 15) else 0.0


def agents(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    """Pods of the agent, and the nodes that they serve."""
    pods = found.pods("agent")
    if not pods and PODS not in found.state.missing:
        yield NO_AGENT.finding(
            "agent",
            "no node runs one, so no card is offered",
            "Label the nodes that have GCUs: kubectl label node NODE enflame.com/gcushare=true, or "
            "set agent.nodeSelector.",
        )
        return
    yield from _unready_agents(pods, found)
    served = {node.name for node in nodes}
    running = set(map(_node_of, pods))
    for pod in pods if RESOURCE_SLICES not in found.state.missing else ():
        node = pod["spec"].get("nodeName")
        if node and node not in served and is_ready(pod):
            yield NO_CARDS.finding(
                f"node {node}", "its agent is ready and offers no card", _see_log(pod)
            )
    offered = {node.name for node in nodes if any(card.is_offered for card in node.cards)}
    for name in sorted(offered - running) if pods else ():
        yield CARDS_WITHOUT_AGENT.finding(
            f"node {name}",
            "its cards are offered, and no agent runs there: pods with GCUs neither start nor end",
            "See why the DaemonSet of the agent has no pod there (labels, taints).",
        )
    for node in found.state.nodes:
        if node["metadata"]["name"] in served and _is_unready(node):
            yield NODE_NOT_READY.finding(
                f"node {node['metadata']['name']}",
                "its kubelet is not ready: pods with GCUs neither start nor end",
                "See kubectl describe node, and the kubelet's log.",
            )


def _is_unready(node: Object) -> bool:
    """A node without conditions has not reported yet."""
    return bool((node.get("status") or {}).get("conditions")) and not is_ready(node)


def _is_found_unready(pod: Object) -> bool:
    return not (is_ready(pod) or is_deleting(pod))


def _unready_agents(agents: Iterable[Object], found: Installation) -> Iterator[Finding]:
    """With what an agent's last event says of its readiness, unless that is that it serves."""
    last: dict[str, Object] = {}
    for event in sorted(found.events, key=event_time):
        regarding = event.get("regarding") or {}
        if regarding.get("kind") == "Node" and event.get("reason") in {_NOT_SERVING, _SERVING}:
            last[str(regarding.get("name"))] = event
    for pod in agents:
        if _is_found_unready(pod):
            event = last.get(_node_of(pod), {})
            note = str(event.get("note") or "") if event.get("reason") == _NOT_SERVING else ""
            yield _not_ready(pod, note, ", and what depends on it is not looked at")


def _not_ready(pod: Object, note: str = "", more: str = "") -> Finding:
    """`note` is why, where an event says it."""
    node = _node_of(pod)
    where = f"pod {full_name(pod)}{' on node ' if node else ''}{node}"
    reasons = [each.reason for each in waiting_containers(pod) if each.reason]
    phase = str((pod.get("status") or {}).get("phase", "Unknown"))
    why = ", ".join(reasons) or ("its readiness fails" if phase == "Running" else phase)
    return NOT_READY.finding(where, f"it is not ready ({note or why}){more}", _see_log(pod))


def _node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _see_log(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"See kubectl logs --namespace {metadata['namespace']} {metadata['name']}."
