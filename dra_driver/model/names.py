"""Every name that the driver shares with Kubernetes, with users or with other programs.

Names that another project owns cite it; the rest are ours and part of the public interface.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

DRIVER: Final = "gcu.enflame.com"

CLASS_WHOLE: Final = "gcu.enflame.com"
CLASS_SHARED: Final = "shared-gcu.enflame.com"
CLASS_DRS: Final = "drs-gcu.enflame.com"
CLASS_PART: Final = "part-gcu.enflame.com"
"""Shared slices or a DRS instance, whatever is the better fit."""
CLASS_ADMIN: Final = "admin-gcu.enflame.com"
"""Whole cards for administrative access, written by the webhook (docs/adr/0040)."""
DEVICE_CLASSES: Final = (CLASS_WHOLE, CLASS_SHARED, CLASS_DRS, CLASS_PART)

# Of the device of a card that is for administrative access alone, where kube-scheduler allocates:
# the start of its name, and its attribute `type`. The others have a mode there.
TYPE_ADMIN: Final = "admin"

# Attributes of a device, unqualified and so in the driver's own domain.
ATTR_TYPE: Final = "type"
ATTR_CARD: Final = "card"
ATTR_MODEL: Final = "model"
ATTR_UUID: Final = "uuid"
ATTR_MEMORY_MIB: Final = "memoryMiB"
ATTR_SIPS: Final = "sips"
ATTR_MEMORY_PER_SLICE_MIB: Final = "memoryPerSliceMiB"
ATTR_PROFILES: Final = "profiles"
ATTR_DRIVER_VERSION: Final = "driverVersion"
ATTR_PCIE_SWITCH: Final = "pcieSwitch"
ATTR_PCIE_BRIDGES: Final = "pcieBridges"
# Standard attributes: k8s.io/dynamic-resource-allocation, package deviceattribute.
ATTR_PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
ATTR_PCI_BUS_ID: Final = "resource.kubernetes.io/pciBusID"
ATTR_NUMA_NODE: Final = "resource.kubernetes.io/numaNode"

CAPACITY_MEMORY: Final = "memory"
CAPACITY_SLICES: Final = "slices"
CAPACITY_SIZE: Final = "size"

TAINT_ALLOCATED_BY: Final = f"{DRIVER}/allocated-by"
TAINT_UNHEALTHY: Final = f"{DRIVER}/unhealthy"
TAINT_FOREIGN: Final = f"{DRIVER}/foreign"
TAINT_CHANGING: Final = f"{DRIVER}/changing"
TAINT_FAILING: Final = f"{DRIVER}/failing"
TAINT_HELD: Final = f"{DRIVER}/held"
TAINT_ADMINISTRATORS: Final = f"{DRIVER}/administrators"
TAINTS_OF_CLAIMS: Final = frozenset({TAINT_ALLOCATED_BY, TAINT_ADMINISTRATORS})
"""Those that say which claims a device is for, and nothing of its card."""
ALLOCATOR_CONTROLLER: Final = "controller"
ALLOCATOR_SCHEDULER: Final = "scheduler"
# On the controller's Lease: who allocates. Written by the leader, read by agents (docs/adr/0027).
ANNOTATION_ALLOCATOR: Final = f"{DRIVER}/allocator"

# On pods of the controller: the version of kube-scheduler that the chart was told.
ANNOTATION_SCHEDULER_VERSION: Final = f"{DRIVER}/scheduler-version"

# On a ResourceSlice all of whose cards are of one model.
LABEL_MODEL: Final = f"{DRIVER}/model"
# On a Node (docs/adr/0047); the first one goes on with the name of a model.
LABEL_CARD_MODEL: Final = f"{DRIVER}/model."
LABEL_CARD_COUNT: Final = f"{DRIVER}/count"
LABEL_CARD_MEMORY: Final = f"{DRIVER}/memory-mib"
LABEL_DRIVER_VERSION: Final = f"{DRIVER}/driver-version"

VALID_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""What a label's value is that is not empty (k8s.io/apimachinery, labelValueFmt and
LabelValueMaxLength), and the name after the slash of its key."""

# The finalizer of an allocated claim, k8s.io/api/resource: with any other one kube-scheduler
# never clears the allocation (seen on 1.36.3).
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
ANNOTATION_TERM: Final = f"{DRIVER}/allocator-term"
SCHEDULING_GATE: Final = f"{DRIVER}/allocation"
# Claim templates for pods with the vendor's limits (docs/adr/0015).
# resource.k8s.io/v1, ResourceDeviceClassPrefix.
CLASS_LIMIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
LIMITS_TEMPLATE_PREFIX: Final = "enflame-"
LABEL_MADE_FOR_LIMITS: Final = f"{DRIVER}/made-for-limits"
# On a Pod: whether limits by memory and compute are for an instance or for slices (docs/adr/0030).
ANNOTATION_ISOLATION: Final = f"{DRIVER}/isolation"

# On a PodGroup: how its pods are packed on nodes, a value of `Packing`.
ANNOTATION_PACK_NODES: Final = f"{DRIVER}/pack-nodes"

# Clusters without DRA (docs/dev/extender.md): on a Node what its agent tells of its cards, on a
# Pod the cards it was placed for, comma-separated PCI addresses, and by container the limits by
# memory and compute that became slices or a size (JSON).
ANNOTATION_CARDS: Final = f"{DRIVER}/cards"
ANNOTATION_ASSIGNED: Final = f"{DRIVER}/assigned-cards"
ANNOTATION_ASKED: Final = f"{DRIVER}/asked-limits"

# As whom agents apply what they tell of a Node or a claim (server-side apply, `fieldManager`).
FIELD_MANAGER: Final = "gcu-dra-agent"
FIELD_MANAGER_LABELS: Final = "gcu-dra-agent-labels"

# The vendor's names, which its users' manifests and other tools rely on (vendor manuals).
VENDOR_PREFIX: Final = "enflame.com/"
RESOURCE_WHOLE: Final = "enflame.com/gcu"
RESOURCE_SHARED: Final = "enflame.com/shared-gcu"
RESOURCE_DRS: Final = "enflame.com/drs-gcu"
RESOURCE_COUNT: Final = "enflame.com/gcu-count"  # of a node's cards; gives none
# HAMi's, which makes a DRS profile of them (docs/enflame-vgcu-support.md of Project-HAMi/HAMi).
RESOURCE_MEMORY: Final = "enflame.com/gcu-memory"  # MiB
RESOURCE_CORE: Final = "enflame.com/gcu-core"  # percent of a card's compute

CDI_KIND: Final = f"{DRIVER}/claim"

# Read by the vendor's container runtime and libraries (vendor manuals).
ENV_VISIBLE_DEVICES: Final = "ENFLAME_VISIBLE_DEVICES"
ENV_TOPS_VISIBLE_DEVICES: Final = "TOPS_VISIBLE_DEVICES"

PCI_VENDORS: Final = frozenset({"1e36", "1ea0"})  # Enflame, and Tencent's re-brand of it


LONGEST_NAME: Final = 253  # of an object and of a pool (resource.k8s.io/v1, PoolNameMaxLength)
ATTRIBUTE_BYTES: Final = 64  # resource.k8s.io/v1, DeviceAttributeMaxValueLength


def pool_name(node: str) -> str:
    """The pool of a node: never the bare node name, as kube-scheduler's counter caches up to
    1.36.2 are keyed by the pool's name alone (kubernetes#140434)."""
    return f"{DRIVER}/{fitting(node, LONGEST_NAME - len(DRIVER) - 1)}"


def fitting(name: str, room: int, mark: str = "") -> str:
    """The name, cut to at most `room` characters. A cut name ends with the `mark`, which keeps it
    unique; without a mark with a hash of the name."""
    if len(name) <= room:
        return name
    mark = mark or hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: room - len(mark) - 1].rstrip('.-')}-{mark}"
