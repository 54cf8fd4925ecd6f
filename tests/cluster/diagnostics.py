"""What a person would look for when a test on a cluster has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tests.cluster.errors import ClusterError

if TYPE_CHECKING:
    from tests.cluster.cluster import Cluster

_LOG_LINES = 40


def collect(cluster: Cluster, namespaces: Iterable[str]) -> str:
    """Events, pods that are not ready and the logs of all pods of the namespaces; node logs.

    Never raises ClusterError: what cannot be had is named in its place.
    """
    sections = [
        ("nodes, slices and claims", lambda: _overview(cluster)),
        *(
            (title, lambda read=read, namespace=namespace: read(cluster, namespace))
            for namespace in dict.fromkeys(namespaces)
            for title, read in (
                (f"events of {namespace}", _events),
                (f"pods of {namespace} that are not ready", _unready_pods),
                (f"pod logs of {namespace}", _pod_logs),
            )
        ),
        *(
            (f"end of {name}'s log", lambda name=name: cluster.processes.tail(name, _LOG_LINES))
            for name in (
                *(node.component("kubelet") for node in cluster.nodes),
                "kube-scheduler",
            )
        ),
    ]
    return "\n\n".join(f"--- {title}\n{_attempt(read)}" for title, read in sections)


def _attempt(read: Callable[[], str]) -> str:
    try:
        return read().rstrip() or "(nothing)"
    except ClusterError as error:
        return f"(not to be had: {error})"


def _overview(cluster: Cluster) -> str:
    kinds = "nodes,resourceslices,resourceclaims"
    return cluster.kubectl("get", kinds, "--all-namespaces", "--output=wide")


def _events(cluster: Cluster, namespace: str) -> str:
    return cluster.kubectl("get", "events", "--namespace", namespace, "--sort-by=.lastTimestamp")


def _unready_pods(cluster: Cluster, namespace: str) -> str:
    unready = []
    for pod in cluster.get("pods", "--namespace", namespace)["items"]:
        conditions = pod["status"].get("conditions", ())
        ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
        if not ready and pod["status"].get("phase") != "Succeeded":
            unready.append(pod["metadata"]["name"])
    if not unready:
        return ""
    return cluster.kubectl("describe", "pods", "--namespace", namespace, *unready)


def _pod_logs(cluster: Cluster, namespace: str) -> str:
    logs = []
    for pod in cluster.get("pods", "--namespace", namespace)["items"]:
        name = pod["metadata"]["name"]
        for flags in ((), ("--previous",)):
            log = _attempt(
                lambda name=name, flags=flags: cluster.kubectl(  # type: ignore[misc]  # as in cgroups
                    "logs",
                    "--namespace",
                    namespace,
                    name,
                    "--all-containers",
                    "--prefix",
                    f"--tail={_LOG_LINES}",
                    *flags,
                )
            )
            if not (flags and "not to be had" in log):
                logs.append(f"{name} {' '.join(flags)}\n{log}")
    return "\n".join(logs)
