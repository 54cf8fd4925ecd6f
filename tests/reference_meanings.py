"""What the names of docs/user/reference.md mean; `reference_tables` has the names from the code."""

from __future__ import annotations

from typing import Final

from dra_driver.model import names
from dra_driver.model.claims.packing import Packing

ATTRIBUTES: Final = {
    names.ATTR_TYPE: "the mode; the DeviceClasses select by it",
    names.ATTR_CARD: "the card's PCI address; the same on all devices of the card",
    names.ATTR_MODEL: "as `efsmi` reports it",
    names.ATTR_UUID: "of the card, as `efsmi` reports it",
    names.ATTR_MEMORY_MIB: "memory of the whole card",
    names.ATTR_MEMORY_PER_SLICE_MIB: "`memoryMiB` by the number of slices; nothing enforces it",
    names.ATTR_PROFILES: "the partitions that the card can be divided into",
    names.ATTR_SIPS: "number of processors, where a profile states it",
    names.ATTR_DRIVER_VERSION: (
        "version of the kernel driver, as three numbers. The rest becomes build metadata, which "
        "is not compared: `1.4.0.3` becomes `1.4.0+3`. Absent if the version does not begin with "
        "three numbers"
    ),
    names.ATTR_PCIE_SWITCH: (
        "the card's nearest PCIe switch, whether or not another card is on it. The value is the "
        "address of the switch's upstream port, the second bridge above the card. Absent if the "
        "card is on a root port"
    ),
    names.ATTR_PCIE_BRIDGES: (
        "the bridges above the card from the root port down, without the PCI domain. Of more than "
        "eight bridges it has the first seven and the nearest switch. Absent if there is none"
    ),
    names.ATTR_PCI_BUS_ID: "the card's PCI address, as other drivers have it",
    names.ATTR_PCIE_ROOT: "the PCIe root complex, as other drivers publish it; absent if unknown",
    names.ATTR_NUMA_NODE: "absent if unknown",
}

CAPACITIES: Final = {
    names.CAPACITY_MEMORY: "of the card",
    names.CAPACITY_SLICES: "slices of one card: `cards.sliceCount`",
    names.CAPACITY_SIZE: "sizes of instances, from the card's profiles",
}

CONFIG: Final = {
    "apiVersion": "required",
    "kind": "required",
    "slices": "slices of a shared card; in claims and claim templates",
    "size": "size of a DRS instance; in claims and claim templates",
    "memory": "what is needed of a card: [memory-and-compute.md](memory-and-compute.md)",
    "cores": "the same, in percent of the card's compute",
    "isolation": "`best-effort`: shared slices; `fixed-share`: a DRS instance",
    "packing.nodes": "which node is preferred; without it `controller.packNodes`",
    "packing.cards": "which card of a node is preferred; without it `controller.packCards`",
    "deviceMetadata": "whether containers get a file with their devices' attributes: "
    "[device-metadata.md](device-metadata.md)",
}

# Of fields whose type does not say which values are valid.
PACKINGS: Final = " or ".join(f"`{each.value}`" for each in Packing)

CONFIG_VALUES: Final = {
    "memory": "a quantity, such as `14Gi`",
    "cores": "whole number, 1 to 99",
    "deviceMetadata": "`true` or `false`",
}

_CLOSED: Final = "NoSchedule"
_EITHER: Final = "NoSchedule or NoExecute"

TAINTS: Final = {
    names.TAINT_ALLOCATED_BY: (
        _CLOSED,
        "on every device with `allocator: controller`: kube-scheduler does not allocate it",
    ),
    names.TAINT_UNHEALTHY: (
        _EITHER,
        "[what is wrong with the card](health.md); NoExecute for values in `agent.evictOn`",
    ),
    names.TAINT_FAILING: (
        _EITHER,
        (
            "claims [could not be prepared](health.md#when-a-device-cannot-be-prepared) on it; "
            "`orphaned`: the instance of an ended claim "
            "[could not be destroyed](health.md#when-a-pod-ends-on-a-card-that-fails)"
        ),
    ),
    names.TAINT_HELD: (
        _CLOSED,
        (
            "a claim that was deleted by force "
            "[still holds the card](health.md#when-a-deleted-claim-still-holds-a-card)"
        ),
    ),
    names.TAINT_FOREIGN: (_CLOSED, "[others use the card](sharing.md#cards-that-others-use)"),
    names.TAINT_CHANGING: (
        _CLOSED,
        (
            "the card is in use, and is offered otherwise when its last claim ends: by other "
            "[rules](sharing.md#what-cards-are-offered-as), another allocator, another serving mode"
        ),
    ),
    names.TAINT_ADMINISTRATORS: (
        _CLOSED,
        (
            "on the device of each card that only claims with `adminAccess` get, with "
            "`allocator: scheduler`: the webhook writes their class and toleration"
        ),
    ),
}

_GCUSHARE: Final = "as the vendor's gcushare writes it: "

# What it is, on which object, who writes it, what it means.
ANNOTATIONS: Final = {
    f"{names.DRIVER}/scheduling-gate": (
        *("label", "Namespace", "you"),
        "`enabled`: its new pods with claims get [the gate](scheduling-gate.md)",
    ),
    "enflame.com/gcushare": (
        *("label", "Node", "you; without DRA the agent"),
        (
            "`true`: an agent runs there, unless `agent.nodeSelector` or `agent.affinity` is set; "
            "without DRA, that the node's cards can be divided"
        ),
    ),
    names.LABEL_MODEL: (
        *("label", "ResourceSlice", "the agent"),
        (
            "the model, where all cards of the slice are of one; "
            "`kubectl get resourceslices -l gcu.enflame.com/model=S60` lists them"
        ),
    ),
    names.SCHEDULING_GATE: (
        *("scheduling gate", "Pod", "you, or the chart's policy"),
        "[kube-scheduler leaves the pod alone](scheduling-gate.md) until its claims are allocated",
    ),
    names.FINALIZER: (
        *("finalizer", "ResourceClaim", "the controller"),
        "Kubernetes' own, of every allocated claim",
    ),
    names.ANNOTATION_TERM: (
        *("annotation", "ResourceClaim", "the controller"),
        "which leader allocated it",
    ),
    names.LABEL_MADE_FOR_LIMITS: (
        *("label", "ResourceClaimTemplate", "the controller"),
        "made for [pods with limits](migrating-from-gcushare.md), and deleted after the last",
    ),
    names.ANNOTATION_PACK_NODES: (
        *("annotation", "PodGroup", "you"),
        f"{PACKINGS}: how [the pods of the group](groups.md) are packed on nodes",
    ),
    names.ANNOTATION_ISOLATION: (
        *("annotation", "Pod", "you"),
        (
            "`fixed-share` or `best-effort`, of [limits by memory and compute]"
            "(memory-and-compute.md#by-limits)"
        ),
    ),
    names.ANNOTATION_ALLOCATOR: (
        *("annotation", "Lease", "the controller"),
        "which program allocates; absent: the controller. [which-allocator.md](which-allocator.md)",
    ),
    f"{names.DRIVER}/issued": (
        *("annotation", "Secret", "helm"),
        "the day on which helm issued the certificate",
    ),
    names.ANNOTATION_SCHEDULER_VERSION: (
        *("annotation", "Pod of the controller", "the chart"),
        "kube-scheduler's version as helm knew it; `kubectl gcu doctor` compares its images",
    ),
    names.ANNOTATION_CARDS: (
        *("annotation", "Node", "the agent, without DRA"),
        "the cards, with who has what of them",
    ),
    names.ANNOTATION_ASSIGNED: (
        *("annotation", "Pod", "the controller, without DRA"),
        "PCI addresses of the cards that the pod was placed for",
    ),
    names.ANNOTATION_ASKED: (
        *("annotation", "Pod", "the controller's webhook, without DRA"),
        (
            "by container, its [limits by memory and compute](memory-and-compute.md#without-dra), "
            "which became slices or a size"
        ),
    ),
    f"{names.DRIVER}/retry": (
        *("annotation", "Pod", "the controller, without DRA"),
        "a new value has kube-scheduler try the waiting pod again",
    ),
    "enflame.com/gcu-shared-capacity": (
        *("annotation", "Node", "the agent, without DRA"),
        _GCUSHARE + "slices of each card",
    ),
    "enflame.com/gcu-drs-capacity": (
        *("annotation", "Node", "the agent, without DRA"),
        _GCUSHARE + "sizes of each card, and the profiles",
    ),
    "enflame.com/gcu-assigned-minor": (
        *("annotation", "Pod", "the controller, without DRA"),
        _GCUSHARE + "the card's minor",
    ),
    "enflame.com/gcu-assigned-index": (
        *("annotation", "Pod", "the controller, without DRA"),
        _GCUSHARE + "the card's index",
    ),
    "enflame.com/gcu-request-size": (
        *("annotation", "Pod", "the controller, without DRA"),
        _GCUSHARE + "how much the pod requests",
    ),
    "enflame.com/gcu-assigned": (
        *("annotation", "Pod", "the controller, without DRA"),
        _GCUSHARE + "`true` when its containers have their devices",
    ),
    "enflame.com/gcu-assigned-time": (
        *("annotation", "Pod", "the controller, without DRA"),
        _GCUSHARE + "when it was placed, in nanoseconds since 1970",
    ),
    "assigned-containers": (
        *("annotation", "Pod", "the controller, without DRA"),
        _GCUSHARE + "what each container has",
    ),
}

_WRONG: Final = "wrong arguments, on standard error"
_PROGRAM: Final = {
    0: "ended by SIGTERM or SIGINT, or by itself to start anew",
    1: "an error, which the log names; Kubernetes restarts the container",
    2: _WRONG,
}

EXIT_CODES: Final = {
    "gcu-dra-agent": _PROGRAM,
    "gcu-dra-controller": _PROGRAM,
    "gcu-dra-uninstall-check": {
        0: "no claim or container has GCUs",
        1: "some have, and are listed; or the cluster cannot be read. helm refuses the uninstall",
        2: _WRONG,
    },
    "gcu-dra-uninstall-slices": {
        0: "no hidden ResourceSlice is left",
        1: "one could not be deleted, or the cluster cannot be read",
        2: _WRONG,
    },
    "kubectl-gcu": {
        0: "everything is shown, and nothing waits",
        1: "the cluster cannot be read, or has no such object",
        2: "wrong usage",
        3: "something is not shown; a warning on standard error says what, and why",
        4: "the pod waits, or something is wrong",
    },
    "gcu-simulator": {0: "done", 1: "an error, on standard error", 2: _WRONG},
}
