"""A cluster's objects as the API server lists them: pages of JSON, with all that its controllers
and kubelets write into them. `bench.fleet` has what of them decides.

Nodes have 8 claims each, allocated and reserved, their pods, and 10 pods without claims.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

from bench import fleet
from controller.cache.claims import MANAGER
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from dra_driver.model.names import FINALIZER

Object = dict[str, Any]

CLAIMS_PER_NODE: Final = 8
OTHER_PODS_PER_NODE: Final = 10
OTHER_PODS: Final = "other-pods"
_PAGE: Final = 500  # objects, as dra_driver.kube.client reads
_RESOURCES: Final = {
    "limits": {"cpu": "1", "memory": "2Gi"},
    "requests": {"cpu": "1", "memory": "2Gi"},
}


def pages(what: str, nodes: int) -> Iterator[bytes]:
    """The pages of a list in a cluster of so many nodes: of a kind, by its plural, or of pods
    without claims (`OTHER_PODS`), which are not in the list of pods. Another process makes them, so
    that the memory of this one has nothing of that."""
    command = [sys.executable, "-m", "bench.lists", what, str(nodes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as made:
        assert made.stdout is not None
        yield from made.stdout


def main() -> None:
    what, nodes = sys.argv[1], int(sys.argv[2])
    make, per_node = {
        RESOURCE_SLICES.plural: (resource_slice, 1),
        NODES.plural: (node, 1),
        RESOURCE_CLAIMS.plural: (claim, CLAIMS_PER_NODE),
        PODS.plural: (pod, CLAIMS_PER_NODE),
        OTHER_PODS: (other_pod, OTHER_PODS_PER_NODE),
    }[what]
    count = nodes * per_node
    for first in range(0, count, _PAGE):
        items = [make(number) for number in range(first, min(first + _PAGE, count))]
        print(json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}))


def resource_slice(number: int) -> Object:
    made = fleet.resource_slice(number)
    fields = _tree("spec.devices", "spec.driver", "spec.nodeName", "spec.pool")
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": fleet.node_name(number),
        "uid": _uid(number),
    }
    metadata = _metadata(
        RESOURCE_SLICES, number, made["metadata"]["name"], ("gcu-dra-agent", fields)
    )
    return made | {"metadata": metadata | {"ownerReferences": [owner]}}


def _metadata(kind: Resource, number: int, name: str, *managers: tuple[str, Object]) -> Object:
    stamp = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    found: Object = {
        "name": name,
        "uid": f"{kind.plural[:4]}0000-0000-4000-8000-{number:012x}",
        "resourceVersion": str(number + 1),
        "creationTimestamp": stamp,
        "managedFields": [
            {
                "manager": manager,
                "operation": "Update",
                "apiVersion": kind.api_version,
                "time": stamp,
                "fieldsType": "FieldsV1",
                "fieldsV1": fields,
            }
            | ({"subresource": "status"} if "f:status" in fields else {})
            for manager, fields in managers
        ],
    }
    return found | ({"namespace": "default"} if kind.namespaced else {})


def _tree(*paths: str) -> Object:
    """``managedFields`` of these fields."""
    root: Object = {}
    for path in paths:
        found = root
        for part in path.split("."):
            found = found.setdefault(f"f:{part}", {})
    return root


def node(number: int) -> Object:
    name = fleet.node_name(number)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": "abc"[number % 3],
    }
    seen = f"2026-01-02T00:{number // 60 % 60:02}:{number % 60:02}Z"
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": f"Kubelet{kind}",
            "message": f"kubelet says {kind}",
            "lastHeartbeatTime": seen,
            "lastTransitionTime": seen,
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {"names": [f"images.example.com/team/app-{n}@sha256:{n:064x}"], "sizeBytes": 10**8 + n}
        for n in range(50)
    ]
    capacity = {"cpu": "64", "memory": "527920000Ki", "pods": "110"}
    fields = _tree("status.conditions", "status.images", "status.capacity")
    return {
        "metadata": _metadata(NODES, number, name, ("kubelet", fields)) | {"labels": labels},
        "spec": {"podCIDR": f"10.{number >> 8}.{number & 255}.0/24"},
        "status": {
            "conditions": conditions,
            "images": images,
            "capacity": capacity,
            "allocatable": capacity,
            "nodeInfo": {"kubeletVersion": "v1.36.3", "machineID": f"{number:032x}"},
        },
    }


def claim(number: int) -> Object:
    """An allocated one, which a pod has reserved."""
    index, card = divmod(number, CLAIMS_PER_NODE)
    made = fleet.claim([fleet.request("shared", 2)])
    term = {"key": "metadata.name", "operator": "In", "values": [fleet.node_name(index)]}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"pod-{number}", "controller": True}
    reserved = _tree("status.reservedFor")
    reserved["f:status"]["f:reservedFor"][f'k:{{"uid":"{_uid(number)}"}}'] = {}
    managers = (
        ("kube-controller-manager", _tree("metadata.ownerReferences", "spec.devices.requests")),
        (
            MANAGER,
            _tree("status.allocation.devices", "status.allocation.nodeSelector"),
        ),
        ("kube-scheduler", reserved),
    )
    metadata = _metadata(RESOURCE_CLAIMS, number, f"claim-{number}", *managers)
    return made | {
        "metadata": metadata
        | {
            "generateName": f"pod-{number}-gcu-",
            "annotations": {"resource.kubernetes.io/pod-claim-name": "gcu"},
            "finalizers": [FINALIZER],
            "ownerReferences": [owner | {"uid": _uid(number), "blockOwnerDeletion": True}],
        },
        "status": {
            "allocation": {
                "devices": {"results": list(fleet.results(index, card, "shared", 2))},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [term]}]},
                "allocationTimestamp": metadata["creationTimestamp"],
            },
            "reservedFor": [{"resource": "pods", "name": f"pod-{number}", "uid": _uid(number)}],
        },
    }


def pod(number: int) -> Object:
    """A running replica with three containers."""
    app = number // 40
    env = [{"name": f"SETTING_{n}", "value": f"{app}-{n}"} for n in range(10)]
    mounts = [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}]
    containers = [
        {
            "name": f"c{n}",
            "image": f"images.example.com/team/app-{app}:1",
            "env": env,
            "resources": _RESOURCES | {"claims": [{"name": "gcu"}]},
            "volumeMounts": mounts,
            "terminationMessagePath": "/dev/termination-log",
            "imagePullPolicy": "IfNotPresent",
        }
        for n in range(3)
    ]
    owner = {"kind": "ReplicaSet", "name": f"app-{app}", "uid": f"rs-{app}", "controller": True}
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    managers = (
        ("kube-controller-manager", _tree("metadata.labels.app", "spec.containers.env")),
        ("kubelet", _tree("status.conditions", "status.containerStatuses", "status.podIP")),
    )
    metadata = _metadata(PODS, number, f"pod-{number}", *managers)
    started = metadata["creationTimestamp"]
    return {
        "metadata": metadata
        | {
            "uid": _uid(number),
            "ownerReferences": [owner],
            "labels": {"app": f"app-{app}", "pod-template-hash": f"{app:010x}"},
            "annotations": {"checksum/settings": f"{app:064x}"},
        },
        "spec": {
            "containers": containers,
            "nodeName": fleet.node_name(number // CLAIMS_PER_NODE),
            "resourceClaims": [{"name": "gcu", "resourceClaimTemplateName": f"app-{app}"}],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{what}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for what in ("not-ready", "unreachable")
            ],
            "volumes": [
                {
                    "name": f"kube-api-access-{number:05x}",
                    "projected": {"sources": [{"serviceAccountToken": {}}]},
                },
                {"name": "settings", "configMap": {"name": f"app-{app}", "defaultMode": 420}},
            ],
            "serviceAccountName": f"app-{app}",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "restartPolicy": "Always",
            "priority": 0,
        },
        "status": {
            "phase": "Running",
            "resourceClaimStatuses": [{"name": "gcu", "resourceClaimName": f"claim-{number}"}],
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": started}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {
                    "name": f"c{n}",
                    "ready": True,
                    "containerID": f"containerd://{number * 3 + n:064x}",
                    "resources": _RESOURCES,
                    "allocatedResources": _RESOURCES["requests"],
                    "state": {"running": {"startedAt": started}},
                }
                for n in range(3)
            ],
        },
    }


def other_pod(number: int) -> Object:
    """A running pod without claims."""
    made = pod(number)
    del made["spec"]["resourceClaims"], made["status"]["resourceClaimStatuses"]
    for container in made["spec"]["containers"]:
        container["resources"] = _RESOURCES
    made["spec"]["nodeName"] = fleet.node_name(number // OTHER_PODS_PER_NODE)
    made["metadata"] |= {
        "name": f"other-{number}",
        "uid": f"oths0000-0000-4000-8000-{number:012x}",
    }
    return made


def _uid(number: int) -> str:
    return f"pods0000-0000-4000-8000-{number:012x}"


if __name__ == "__main__":
    main()
