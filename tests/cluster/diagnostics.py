"""What a person would look for when a test on a cluster has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.cluster.errors import ClusterError, CommandError

if TYPE_CHECKING:
    from tests.cluster.cluster import Cluster

_LOG_LINES = 40


def collect(cluster: Cluster, namespaces: Iterable[str]) -> str:
    """Of each namespace events, unready pods and logs; nodes, slices, claims and all pods; node
    logs. What says most about a failure comes first, as reports are cut at their end.

    What cannot be had is named in its place, so that one failure does not hide the rest.
    """
    sections: list[tuple[str, Callable[[], str]]] = []
    for namespace in dict.fromkeys(namespaces):
        sections += [
            (f"events of {namespace}", partial(_events, cluster, namespace)),
            (f"pods of {namespace} that are not ready", partial(_unready, cluster, namespace)),
            (f"pod logs of {namespace}", partial(_pod_logs, cluster, namespace)),
        ]
    sections.append(("nodes, slices, claims and pods", partial(_overview, cluster)))
    for name in (*(node.component("kubelet") for node in cluster.nodes), "kube-scheduler"):
        sections.append((f"end of {name}'s log", partial(cluster.processes.tail, name, _LOG_LINES)))
    return "\n\n".join(f"--- {title}\n{_attempt(read)}" for title, read in sections)


def _attempt(read: Callable[[], str]) -> str:
    try:
        return read().rstrip() or "(nothing)"
    except ClusterError as error:
        return f"(not to be had: {error})"


def _overview(cluster: Cluster) -> str:
    kinds = "nodes,resourceslices,resourceclaims,pods" if cluster.release.dra else "nodes,pods"
    found = cluster.kubectl("get", kinds, "--all-namespaces", "--output=wide")
    # Without slices it is the Node that tells of devices.
    return found if cluster.release.dra else f"{found}\n{cluster.kubectl('describe', 'nodes')}"


def _events(cluster: Cluster, namespace: str) -> str:
    return cluster.kubectl("get", "events", "--namespace", namespace, "--sort-by=.lastTimestamp")


def _unready(cluster: Cluster, namespace: str) -> str:
    pods = cluster.get("pods", "--namespace", namespace)["items"]
    names = [pod["metadata"]["name"] for pod in pods if not _ready_or_done(pod["status"])]
    if not names:
        return ""
    return cluster.kubectl("describe", "pods", "--namespace", namespace, *names)


def _ready_or_done(status: dict[str, Any]) -> bool:
    conditions = status.get("conditions", ())
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return ready or status.get("phase") == "Succeeded"


def _pod_logs(cluster: Cluster, namespace: str) -> str:
    pods = cluster.get("pods", "--namespace", namespace)["items"]
    return "\n".join(
        f"{pod['metadata']['name']}\n{_logs(cluster, namespace, pod['metadata']['name'])}"
        for pod in pods
    )


def _logs(cluster: Cluster, namespace: str, pod: str) -> str:
    flags = ("--namespace", namespace, "--all-containers", "--prefix", f"--tail={_LOG_LINES}")
    current = _attempt(partial(cluster.kubectl, "logs", pod, *flags))
    try:
        previous = cluster.kubectl("logs", pod, *flags, "--previous")
    except CommandError:
        return current  # no container of it was started twice
    return f"{current}\nbefore the restart:\n{previous}"
