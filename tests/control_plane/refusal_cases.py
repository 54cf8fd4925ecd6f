"""What the accounts of the chart may not do: attempts with their tokens, and how they are refused.

`BOTH` is for either program's account, `AGENT` and `CONTROLLER` for that of one.
"""

from __future__ import annotations

from collections.abc import Callable

from dra_driver.kube.api import PatchType
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    LEASES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from tests.control_plane.attempts import CONFIG_MAPS, DAEMON_SETS, SECRETS, Stage
from tests.control_plane.objects import whole

Attempt = Callable[[Stage], object]
Cases = dict[str, tuple[Attempt, str]]

POLICY = r"the agent on node '.*' may not write a slice of driver"
STATUS = r"changing status\.devices requires resource=.resourceclaims/driver"
BINDING = r"changing status\.allocation or status\.reservedFor requires"
POD = "changes neither a pod.s containers nor where it may run"


def rbac(verb: str, plural: str) -> str:
    return rf'cannot {verb} resource "{plural}"'


def select(*nodes: str) -> Object:
    field = {"key": "metadata.name", "operator": "In", "values": list(nodes)}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def others_slice(stage: Stage) -> Object:
    """As anybody may read it who may read slices."""
    return stage.thief.get(RESOURCE_SLICES, f"{stage.other}-0")


def listed_slice(stage: Stage) -> Object:
    selector = f"spec.nodeName={stage.other}"
    listed: list[Object] = list(stage.thief.list(RESOURCE_SLICES, field_selector=selector).items)
    [found] = listed
    return found


def altered(stage: Stage, **spec: object) -> object:
    found = listed_slice(stage)
    return stage.thief.replace(RESOURCE_SLICES, found | {"spec": found["spec"] | spec})


def allocation_on(node: str) -> Object:
    result = {
        "request": "gcu",
        "driver": DRIVER,
        "pool": f"{DRIVER}/{node}",
        "device": "whole-0000-0d-00-0",
    }
    return {"devices": {"results": [result]}, "nodeSelector": select(node)}


def edited(stage: Stage, op: str, path: str, value: object) -> object:
    """One place of the pod is another, and the rest as it was."""
    edit: Object = {"op": op, "path": path, "value": value}
    return stage.thief.patch(
        PODS, "pod", [edit], namespace=stage.namespace, patch_type=PatchType.JSON
    )


BOTH: Cases = {
    "read a secret": (lambda s: s.read(SECRETS, "any"), rbac("get", "secrets")),
    "list secrets": (lambda s: s.thief.list(SECRETS), rbac("list", "secrets")),
    "make a secret": (lambda s: s.create(SECRETS), rbac("create", "secrets")),
    "read a config map": (lambda s: s.read(CONFIG_MAPS, "any"), rbac("get", "configmaps")),
    "list config maps": (lambda s: s.thief.list(CONFIG_MAPS), rbac("list", "configmaps")),
    "make a config map": (lambda s: s.create(CONFIG_MAPS), rbac("create", "configmaps")),
    "label a node": (
        lambda s: s.patch(NODES, s.other, {"metadata": {"labels": {"a": "b"}}}),
        rbac("patch", "nodes"),
    ),
    "cordon its node": (
        lambda s: s.patch(NODES, s.own, {"spec": {"unschedulable": True}}),
        rbac("patch", "nodes"),
    ),
    "make a node": (lambda s: s.create(NODES), rbac("create", "nodes")),
    "delete a node": (lambda s: s.delete(NODES, s.other), rbac("delete", "nodes")),
    "make a pod": (lambda s: s.create(PODS, spec={}), rbac("create", "pods")),
    "delete a pod": (lambda s: s.delete(PODS, "pod"), rbac("delete", "pods")),
    "make a daemon set": (lambda s: s.create(DAEMON_SETS), rbac("create", "daemonsets")),
    "alter a device class": (
        lambda s: s.patch(DEVICE_CLASSES, "gcu.enflame.com", {"spec": {}}),
        rbac("patch", "deviceclasses"),
    ),
    "make a claim": (
        lambda s: s.create(RESOURCE_CLAIMS, spec={}),
        rbac("create", "resourceclaims"),
    ),
    "delete a claim": (
        lambda s: s.delete(RESOURCE_CLAIMS, "free"),
        rbac("delete", "resourceclaims"),
    ),
    "take a lease of another's": (
        lambda s: s.create(LEASES, spec={}),
        rbac("create", "leases"),
    ),
}
AGENT: Cases = {
    "make a slice of another node": (lambda s: s.make_slice(nodeName=s.other), POLICY),
    "make a slice in another node's pool": (
        lambda s: s.make_slice(
            pool={"name": f"{DRIVER}/{s.other}", "generation": 9, "resourceSliceCount": 1}
        ),
        rf"{POLICY}.*in pool '{DRIVER}/",
    ),
    "make a slice in a pool that is no node's": (
        lambda s: s.make_slice(pool={"name": "any", "generation": 1, "resourceSliceCount": 1}),
        rf"{POLICY}.*in pool 'any'",
    ),
    "make a slice that selects nodes": (
        lambda s: s.make_slice(nodeName=None, nodeSelector=select(s.other)),
        POLICY,
    ),
    "make a slice that selects its own node": (
        lambda s: s.make_slice(nodeName=None, nodeSelector=select(s.own)),
        POLICY,
    ),
    "make a slice of all nodes": (lambda s: s.make_slice(nodeName=None, allNodes=True), POLICY),
    "make a slice whose devices select nodes": (
        lambda s: s.make_slice(
            nodeName=None,
            perDeviceNodeSelection=True,
            devices=[{**whole(0x0D), "nodeName": s.other}],
        ),
        POLICY,
    ),
    "make a slice of another driver": (
        lambda s: s.make_slice(driver="gpu.example.com"),
        r"driver 'gpu\.example\.com'",
    ),
    "alter another node's slice, by name": (
        lambda s: s.thief.replace(RESOURCE_SLICES, others_slice(s)),
        rbac("get", "resourceslices"),
    ),
    "alter another node's slice, by selector": (lambda s: altered(s, devices=[]), POLICY),
    "take another node's slice over": (lambda s: altered(s, nodeName=s.own), "is immutable"),
    "patch another node's slice": (
        lambda s: s.patch(RESOURCE_SLICES, f"{s.other}-0", {"spec": {"devices": []}}),
        rbac("patch", "resourceslices"),
    ),
    "delete another node's slice": (lambda s: s.delete(RESOURCE_SLICES, f"{s.other}-0"), POLICY),
    "alter a claim": (
        lambda s: s.thief.replace(RESOURCE_CLAIMS, s.claim(s.own)),
        rbac("update", "resourceclaims"),
    ),
    "annotate a claim": (
        lambda s: s.patch(RESOURCE_CLAIMS, s.own, {"metadata": {"annotations": {"a": "b"}}}),
        rbac("patch", "resourceclaims"),
    ),
    "replace a claim's status": (
        lambda s: s.thief.replace(RESOURCE_CLAIMS, s.claim(s.own), subresource="status"),
        rbac("update", "resourceclaims/status"),
    ),
    "allocate a claim": (
        lambda s: s.patch_status("free", {"allocation": allocation_on(s.own)}),
        BINDING,
    ),
    "release a claim of its own node": (
        lambda s: s.patch_status(s.own, {"allocation": None}),
        BINDING,
    ),
    "reserve a claim of its own node": (
        lambda s: s.patch_status(
            s.own, {"reservedFor": [{"resource": "pods", "name": "pod", "uid": "1"}]}
        ),
        BINDING,
    ),
    "tell of a device of another driver": (lambda s: s.tell(s.own, "gpu.example.com"), STATUS),
    "tell of a claim of another node": (lambda s: s.tell(s.other), STATUS),
    "tell of a claim of no node": (
        lambda s: s.tell("free"),
        "must be an allocated device in the claim",
    ),
    "list claims": (lambda s: s.thief.list(RESOURCE_CLAIMS), rbac("list", "resourceclaims")),
    "list claims of a namespace": (
        lambda s: s.thief.list(RESOURCE_CLAIMS, namespace=s.namespace),
        rbac("list", "resourceclaims"),
    ),
    "watch claims": (lambda s: s.watch(RESOURCE_CLAIMS), rbac("watch", "resourceclaims")),
    "list pods": (lambda s: s.thief.list(PODS), rbac("list", "pods")),
    "list pods of its own node": (
        lambda s: s.thief.list(PODS, field_selector=f"spec.nodeName={s.own}"),
        rbac("list", "pods"),
    ),
    "watch pods": (lambda s: s.watch(PODS), rbac("watch", "pods")),
    "watch pods of its own node": (
        lambda s: s.watch(PODS, field_selector=f"spec.nodeName={s.own}"),
        rbac("watch", "pods"),
    ),
    "patch a pod": (lambda s: s.patch(PODS, "pod", {"spec": {}}), rbac("patch", "pods")),
    "list nodes": (lambda s: s.thief.list(NODES), rbac("list", "nodes")),
    "watch nodes": (lambda s: s.watch(NODES), rbac("watch", "nodes")),
    "list device classes": (
        lambda s: s.thief.list(DEVICE_CLASSES),
        rbac("list", "deviceclasses"),
    ),
}
CONTROLLER: Cases = {
    "make a slice": (lambda s: s.make_slice(), rbac("create", "resourceslices")),
    "alter a slice": (
        lambda s: s.thief.replace(RESOURCE_SLICES, listed_slice(s)),
        rbac("update", "resourceslices"),
    ),
    "delete a slice": (
        lambda s: s.delete(RESOURCE_SLICES, f"{s.other}-0"),
        rbac("delete", "resourceslices"),
    ),
    "tell of a device": (lambda s: s.tell(s.other), rbac("patch", "resourceclaims/status")),
    "tell of a device by replacing the status": (
        lambda s: s.thief.replace(
            RESOURCE_CLAIMS,
            (found := s.claim(s.other))
            | {"status": found["status"] | {"devices": [_device(s.other)]}},
            subresource="status",
        ),
        STATUS,
    ),
    "read a node": (lambda s: s.read(NODES, s.other), rbac("get", "nodes")),
    "alter a pod's image": (
        lambda s: edited(s, "replace", "/spec/containers/0/image", "example.com/other"),
        POD,
    ),
    "choose a pod's node": (
        lambda s: s.patch(PODS, "pod", {"spec": {"nodeSelector": {"a": "b"}}}),
        POD,
    ),
    "label a pod": (
        lambda s: s.patch(PODS, "pod", {"metadata": {"labels": {"a": "b"}}}),
        POD,
    ),
    "annotate a pod": (
        lambda s: s.patch(PODS, "pod", {"metadata": {"annotations": {"a": "b"}}}),
        "changes no annotation of a pod",
    ),
    "let a pod tolerate": (
        lambda s: edited(s, "add", "/spec/tolerations/-", {"operator": "Exists"}),
        POD,
    ),
    "end a pod early": (
        lambda s: s.patch(PODS, "pod", {"spec": {"activeDeadlineSeconds": 1}}),
        POD,
    ),
    "lift another's gate": (
        lambda s: lift(s, "example.com/wait"),
        "lifts its own scheduling gate, and no other",
    ),
    "bind a pod": (
        lambda s: s.thief.patch(
            PODS,
            "pod",
            {"target": {"name": s.other}},
            namespace=s.namespace,
            subresource="binding",
        ),
        rbac("patch", "pods/binding"),
    ),
}


def _device(node: str) -> Object:
    return {"driver": DRIVER, "pool": f"{DRIVER}/{node}", "device": "whole-0000-0d-00-0"}


def lift(stage: Stage, gate: str) -> object:
    return stage.thief.patch(
        PODS,
        "pod",
        {"spec": {"schedulingGates": [{"$patch": "delete", "name": gate}]}},
        namespace=stage.namespace,
        patch_type=PatchType.STRATEGIC_MERGE,
    )
