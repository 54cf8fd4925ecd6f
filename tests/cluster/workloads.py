"""Pods of the small busybox image, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.configs import SANDBOX_IMAGE
from tests.cluster.errors import CommandError, WaitTimeout
from tests.cluster.waiting import PATIENCE, wait_until


def pod(name: str, namespace: str, command: str = "sleep infinity", **spec: Any) -> dict[str, Any]:
    """A pod of one container `main` that runs a shell command; `spec` fields replace ours."""
    container = {"name": "main", "image": SANDBOX_IMAGE, "command": ["sh", "-c", command]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


def wait_for_pods(cluster: Cluster, namespace: str, *names: str) -> None:
    """Return when all these pods are ready. Raises CommandError and WaitTimeout, the latter with
    what the others say; at once where one of them has failed, as it stays so."""
    found: dict[str, dict[str, Any]] = {}

    def settled() -> bool:
        pods = cluster.get("pods", f"--namespace={namespace}")["items"]
        found.clear()
        found.update((each["metadata"]["name"], each) for each in pods)
        here = [found.get(name, {"status": {}}) for name in names]
        return all(map(is_ready, here)) or any(map(_has_failed, here))

    with suppress(WaitTimeout):
        wait_until(settled, PATIENCE, "ready pods")
    missing = [name for name in names if name not in found]
    late = [found[name] for name in names if name in found and not is_ready(found[name])]
    if missing or late:
        failed = [each for each in late if _has_failed(each)]
        gone = "".join(f"there is no pod {name}\n" for name in missing)
        raise WaitTimeout(gone + why_not_ready(cluster, failed or late))


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether the pod's condition says so."""
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _has_failed(pod: Mapping[str, Any]) -> bool:
    return bool(pod["status"].get("phase") == "Failed")


def why_not_ready(cluster: Cluster, found: Iterable[dict[str, Any]]) -> str:
    """For each pod that is not ready why, its last warning, and the end of its log: short, as
    reports are cut."""
    said = (
        (why, _last_warning(cluster, each), *_last_words(cluster, each))
        for each in found
        if (why := _why_not_ready(each))
    )
    return "\n".join(line for lines in said for line in lines if line)


def _last_warning(cluster: Cluster, pod: dict[str, Any]) -> str:
    selector = f"--field-selector=type=Warning,involvedObject.uid={pod['metadata']['uid']}"
    scope = f"--namespace={pod['metadata']['namespace']}"
    events = cluster.get("events", scope, selector)["items"]
    return f"  {events[-1]['reason']}: {events[-1]['message']}" if events else ""


def _last_words(cluster: Cluster, pod: dict[str, Any]) -> list[str]:
    scope = f"--namespace={pod['metadata']['namespace']}"
    flags = ("--all-containers", "--tail=3", "--ignore-errors")
    try:
        log = cluster.kubectl("logs", scope, pod["metadata"]["name"], *flags)
    except CommandError as error:  # no container has started, or the pod is gone
        log = error.output
    return [f"  {line}" for line in log.splitlines()]


def _why_not_ready(pod: dict[str, Any]) -> str:
    status = pod["status"]
    conditions = {each["type"]: each for each in status.get("conditions", ())}
    if is_ready(pod):
        return ""
    said = [status, *(each for each in conditions.values() if each["status"] == "False")]
    said += [
        state
        for each in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
        for state in each["state"].values()
    ]
    reasons = dict.fromkeys(
        f"{each.get('reason', '')} {each.get('message', '')}".strip() for each in said
    )
    node = pod["spec"].get("nodeName", "no node")
    return (
        f"{pod['metadata']['name']} ({status['phase']}, {node}): {'; '.join(filter(None, reasons))}"
    )


def why_unscheduled(pod: dict[str, Any]) -> str:
    """kube-scheduler's newest reason why the pod has no node, or "".

    Of its events that is not known: those about one version of a pod are merged into a series that
    keeps the words of the first (`getKey` of client-go's tools/events/event_broadcaster.go).
    """
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return ""
