"""The pods for which a prepare call may be made.

The kubelet's call has claims, and no pod. The pods that use a claim are in its
``status.reservedFor``: the kubelet prepares a claim for no other pod
(``pkg/kubelet/cm/dra/manager.go``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import ClaimRef, Object, claim_names, reserved_for
from dra_driver.model.errors import GcuError
from dra_driver.node.ports import ObjectReader
from dra_driver.node.results import in_parallel


def find_pods(
    refs: Iterable[ClaimRef], claims: Iterable[Object], reader: ObjectReader, node: str
) -> list[Object]:
    """The pods on this node that use all of `refs`; `claims` are those that were read.

    Raises KubeError where one cannot be read.
    """
    names = {ref.name for ref in refs}
    namespaces = {ref.namespace for ref in refs}
    consumers = {
        f"{namespace}/{name}/{uid}": (namespace, name, uid)
        for namespace in sorted(namespaces)
        for name, uid in sorted(_pods(claims))
    }
    steps = {
        key: partial(reader.get, PODS, name, namespace=namespace)
        for key, (namespace, name, _) in consumers.items()
    }
    found = in_parallel(steps)
    pods = []
    for key, pod in found.items():
        if isinstance(pod, NotFound):
            continue
        if isinstance(pod, GcuError):
            raise pod
        same = pod["metadata"].get("uid") == consumers[key][2]
        on_node = pod["spec"].get("nodeName") == node
        if same and on_node and names <= set(claim_names(pod).values()):
            pods.append(pod)
    return sorted(pods, key=title)


def title(pod: Mapping[str, Any]) -> str:
    """For people."""
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"


def _pods(claims: Iterable[Object]) -> set[tuple[str, str]]:
    """Names and UIDs of the pods for which all claims are reserved."""
    common: set[tuple[str, str]] | None = None
    for claim in claims:
        pods = {
            (entry["name"], entry["uid"])
            for entry in reserved_for(claim)
            if entry.get("resource") == "pods" and not entry.get("apiGroup")
        }
        common = pods if common is None else common & pods
    return common or set()
