"""What the controller's cache takes of a large cluster, read from the server's JSON page by page.

``python -m bench.memory`` decodes lists of 5,000 slices of 24 devices, 5,000 nodes, 40,000 claims,
allocated and reserved, and their 40,000 pods, all as an API server writes them, with
``managedFields``, puts them into the cache, and decides once. `start_s` is the CPU time of it all
but the making of the JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import fleet
from bench.report import result, table
from controller.allocator.allocate import Allocation, allocate
from controller.allocator.request import parse_claim
from controller.cluster.cache import ClusterCache
from dra_driver.kube.decoding import SharingDecoder
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.selector.selector import Selectors

NODE_COUNT, CLAIMS_PER_NODE, PAGE = 5_000, 8, 500
Object = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODE_COUNT)
    parser.add_argument("--apart", action="store_true", help="decode as the standard library does")
    given = parser.parse_args()
    result(measure(given.nodes, json.loads if given.apart else SharingDecoder()))


def measure(nodes: int, decode: Callable[[bytes], Any]) -> dict[str, Any]:
    """MiB after each kind of object, the most at any time, and seconds of CPU time."""
    cache, rows, spent = ClusterCache(Selectors()), [], 0.0
    cache.replace(
        DEVICE_CLASSES,
        [
            {**each, "metadata": {**each["metadata"], "uid": name}}
            for name, each in fleet.classes().items()
        ],
    )
    before = _rss_mib()
    for kind, make, count in (
        (RESOURCE_SLICES, fleet.resource_slice, nodes),
        (NODES, node, nodes),
        (RESOURCE_CLAIMS, claim, nodes * CLAIMS_PER_NODE),
        (PODS, pod, nodes * CLAIMS_PER_NODE),
    ):
        items: list[Object] = []
        for text in _pages(make, count):
            started = time.thread_time()
            items += ({"kind": kind.kind, **each} for each in decode(text)["items"])
            spent += time.thread_time() - started
        started = time.thread_time()
        cache.replace(kind, items)
        spent += time.thread_time() - started
        rows.append([kind.plural, count, _rss_mib() - before])
        before = _rss_mib()
    started = time.thread_time()
    wanted = [parse_claim(fleet.claim([fleet.request("shared", 2)]), cache.state().classes)]
    assert isinstance(allocate(cache.state(), wanted, frozenset(cache.nodes)), Allocation)
    spent += time.thread_time() - started
    table("Kept in the cache, in MiB", ["", "objects", "RSS"], rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"rss_mib": _rss_mib(), "rss_peak_mib": peak, "start_s": round(spent, 1)}


def _pages(make: Callable[[int], Object], count: int) -> Iterator[bytes]:
    for first in range(0, count, PAGE):
        items = [make(number) for number in range(first, min(first + PAGE, count))]
        yield json.dumps({"items": items}).encode()


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
            "gcu-dra-controller",
            _tree("status.allocation.devices", "status.allocation.nodeSelector"),
        ),
        ("kube-scheduler", reserved),
    )
    metadata = _metadata(RESOURCE_CLAIMS, number, f"claim-{number}", *managers)
    return made | {
        "metadata": metadata | {"ownerReferences": [owner | {"uid": _uid(number)}]},
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
            "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "gcu"}]},
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
        "metadata": metadata | {"uid": _uid(number), "ownerReferences": [owner]},
        "spec": {
            "containers": containers,
            "nodeName": fleet.node_name(number // CLAIMS_PER_NODE),
            "resourceClaims": [{"name": "gcu", "resourceClaimName": f"claim-{number}"}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
        "status": {
            "phase": "Running",
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
                    "state": {"running": {"startedAt": started}},
                }
                for n in range(3)
            ],
        },
    }


def _uid(number: int) -> str:
    return f"pods0000-0000-4000-8000-{number:012x}"


def _rss_mib() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() // 2**20


if __name__ == "__main__":
    main()
