"""Network interfaces as dranet publishes them, and processors as the driver dra.cpu does, beside
cards: stand-ins for two other drivers.

Sources: kubernetes-sigs/dranet, `pkg/apis/attributes.go` and `pkg/inventory/db.go`;
kubernetes-sigs/dra-driver-cpu, `pkg/device`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_WHOLE

NET: Final = "dra.net"
CPU: Final = "dra.cpu"
PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
SAME_ROOT: Final[Object] = {"matchAttribute": PCIE_ROOT}
RDMA: Final = f'device.attributes["{NET}"].rdma'


def root_of(bus: int) -> str:
    """Two cards and two interfaces are below one root."""
    return f"pci0000:{bus // 2:02x}"


def device_class(driver: str) -> Object:
    """The class of all devices of the driver, which has the driver's name."""
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": driver},
        "spec": {"selectors": selectors},
    }


def interface(bus: int, root: str = "", **more: Any) -> Object:
    """The interface on that bus, below the root of the card on it, or another one. `more` are other
    fields of the device."""
    attributes: Object = {
        "ifName": {"string": f"eth{bus}"},
        "pciAddress": {"string": f"0000:{bus:02x}:00.1"},
        "pciVendor": {"string": "Mellanox Technologies"},
        "pciDevice": {"string": "MT2910 Family [ConnectX-7]"},
        "mac": {"string": f"7c:c2:55:00:00:{bus:02x}"},
        "mtu": {"int": 9000},
        "encapsulation": {"string": "ether"},
        "state": {"string": "up"},
        "type": {"string": "device"},
        "numaNode": {"int": bus // 4},
        "ebpf": {"bool": False},
        "sriov": {"bool": False},
        "virtual": {"bool": False},
        "rdma": {"bool": True},
        "rdmaDevice": {"string": f"mlx5_{bus}"},
    }
    named = {f"{NET}/{name}": value for name, value in attributes.items()}
    named[PCIE_ROOT] = {"string": root or root_of(bus)}
    return {"name": f"pci-0000-{bus:02x}-00-1", "attributes": named, **more}


def processor(number: int) -> Object:
    """One of 64 a NUMA node."""
    attributes = {"numaNodeID": number // 64, "socketID": number // 64, "coreID": number // 2}
    named: Object = {f"{CPU}/{name}": {"int": value} for name, value in attributes.items()}
    return {"name": f"cpudev{number:03}", "attributes": named}


def other_slice(
    node: str, devices: Sequence[Object], driver: str = NET, *, count: int = 1, **more: Any
) -> Object:
    """A slice of the node's pool, of `count` ones. `more` goes into the spec, in place of the node
    if it says which nodes it is for."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": count}
    spec = {"driver": driver, "pool": pool, "devices": list(devices), **more}
    if "allNodes" not in more:
        spec["nodeName"] = node
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": spec,
    }


def request(driver: str, count: int = 1, *expressions: str, **more: Any) -> Object:
    """For devices of the driver. It is called by the last part of the driver's name."""
    exactly: Object = {"deviceClassName": driver, "count": count, **more}
    if expressions:
        exactly["selectors"] = [{"cel": {"expression": each}} for each in expressions]
    return {"name": driver.rpartition(".")[2], "exactly": exactly}


def card_and_interface(
    name: str, namespace: str, *others: Object, constraint: Object = SAME_ROOT
) -> Object:
    """A claim for a card, and for an interface with RDMA below the same root; or for what else
    `others` request, with another constraint."""
    gcu = {"name": "gcu", "exactly": {"deviceClassName": CLASS_WHOLE}}
    requests = [gcu, *(others or [request(NET, 1, RDMA)])]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": requests, "constraints": [constraint]}},
    }


def with_device(claim: Object, node: str, *devices: str, driver: str = NET, **more: Any) -> Object:
    """The claim as it is allocated these devices of the node's pool. `more` goes into results."""
    results = [
        {"request": "net", "driver": driver, "pool": node, "device": device, **more}
        for device in devices
    ]
    return claim | {"status": {"allocation": {"devices": {"results": results}}}}
