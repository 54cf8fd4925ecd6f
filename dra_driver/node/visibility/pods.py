"""The pods for which a prepare call may be made, and whether they must be read.

The kubelet's call has claims, and no pod. The pods that use a claim are in its
``status.reservedFor``: the kubelet prepares a claim for no other pod
(``pkg/kubelet/cm/dra/manager.go``). It leaves a claim out of a call once it is prepared, so a
container may use a claim of the call together with one that was prepared for another pod. If the
pod were read for every call, each prepare would wait for the API server twice. The journal has all
prepared claims of the pod's namespace, so it is read only if there can be such a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import ClaimRef, Object, claim_names, reserved_for
from dra_driver.model.errors import GcuError
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.ports import ObjectReader
from dra_driver.node.results import in_parallel

_EXTENDED: Final = "extended resources"
"""The name by which pods use the claim that kube-scheduler made for their extended resources. No
name in ``spec.resourceClaims`` has a blank."""


def find_pods(
    refs: Sequence[ClaimRef], claims: Iterable[Object], reader: ObjectReader, node: str
) -> list[Object]:
    """The pods on this node that use all of `refs`, which are of one namespace; `claims` are those
    that were read. A claim for a pod's extended resources is in the pod as its other claims are.

    Raises KubeError where one cannot be read.
    """
    names = {ref.name for ref in refs}
    steps = {
        (name, uid): partial(reader.get, PODS, name, namespace=refs[0].namespace)
        for name, uid in sorted(_pods(claims))
    }
    pods = []
    for (_, uid), read in in_parallel(steps).items():
        if isinstance(read, NotFound):
            continue
        if isinstance(read, GcuError):
            raise read
        pod = _with_extended_claim(read)
        same = pod["metadata"].get("uid") == uid
        on_node = pod["spec"].get("nodeName") == node
        if same and on_node and names <= set(claim_names(pod).values()):
            pods.append(pod)
    return sorted(pods, key=title)


def may_use_others(ledger: Ledger, ref: ClaimRef, claim: Object) -> bool:
    """Whether a pod that uses `claim`, the only one of a call, may use another prepared one. Only
    one pod can use a claim that was made for it from a template; any other claim can be reserved
    for further pods at any time."""
    consumers = reserved_for(claim)
    if not consumers:
        return False  # the kubelet starts no container for a claim that is reserved for nobody
    only_pods = {
        next((device.made_for for device in held.devices if device.made_for), "")
        for other, held in ledger.prepared_in(ref.namespace).items()
        if other.uid != ref.uid
    }
    if not all(map(_is_pod, consumers)):
        return bool(only_pods)
    return not only_pods.isdisjoint({"", *(entry["uid"] for entry in consumers)})


def is_of_group(claim: Mapping[str, Any]) -> bool:
    """Whether the claim is reserved for a PodGroup (Kubernetes 1.37,
    ``DRAWorkloadResourceClaims``), and not for pods."""
    return any(
        (entry.get("apiGroup"), entry.get("resource")) == ("scheduling.k8s.io", "podgroups")
        for entry in reserved_for(claim)
    )


def title(pod: Mapping[str, Any]) -> str:
    """For people."""
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"


def _pods(claims: Iterable[Object]) -> set[tuple[str, str]]:
    """Names and UIDs of the pods for which all claims are reserved. A claim of a PodGroup is
    reserved for the group, whose pods the agent may not list: those of the other claims count."""
    common: set[tuple[str, str]] | None = None
    for claim in claims:
        if is_of_group(claim):
            continue
        pods = {(entry["name"], entry["uid"]) for entry in reserved_for(claim) if _is_pod(entry)}
        common = pods if common is None else common & pods
    return common or set()


def _is_pod(consumer: Mapping[str, Any]) -> bool:
    return consumer.get("resource") == "pods" and not consumer.get("apiGroup")


def _with_extended_claim(pod: Object) -> Object:
    """The pod with the claim that kube-scheduler made for its extended resources (limits), as if
    the pod and its containers named the claim: only the pod's status does (core/v1,
    PodExtendedResourceClaimStatus)."""
    status = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    if not status:
        return pod
    uses: dict[str, list[Object]] = {}
    for mapping in status.get("requestMappings") or ():
        use = {"name": _EXTENDED, "request": mapping["requestName"]}
        uses.setdefault(mapping["containerName"], []).append(use)
    spec = dict(pod["spec"])
    claim = {"name": _EXTENDED, "resourceClaimName": status["resourceClaimName"]}
    spec["resourceClaims"] = [*(spec.get("resourceClaims") or ()), claim]
    for kind in ("initContainers", "containers"):
        spec[kind] = [_using(each, uses.get(each["name"], [])) for each in spec.get(kind) or ()]
    return {**pod, "spec": spec}


def _using(container: Object, uses: list[Object]) -> Object:
    resources = container.get("resources") or {}
    claims = [*(resources.get("claims") or ()), *uses]
    return {**container, "resources": {**resources, "claims": claims}}
