"""The fields that the controller reads of each kind of object; all others are skipped unread.

A claim that is written back is none of these: `controller.informers.decoders`.
"""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

_Quantities = dict[str, str]


class _Owner(TypedDict, total=False):
    controller: bool
    kind: str
    uid: str


class _Identity(TypedDict, total=False):
    name: str
    uid: str
    resourceVersion: str
    deletionTimestamp: str


class _PodMeta(_Identity, total=False):
    namespace: str
    creationTimestamp: str
    ownerReferences: list[_Owner]


class _Resources(TypedDict, total=False):
    claims: list[dict[str, str]]
    requests: _Quantities


class _Container(TypedDict, total=False):
    name: str
    resources: _Resources
    restartPolicy: str


class _ClaimReference(TypedDict, total=False):
    name: str
    resourceClaimName: str
    resourceClaimTemplateName: str


class _Affinity(TypedDict, total=False):
    nodeAffinity: dict[str, Any]


class _Gate(TypedDict, total=False):
    name: str


class _VolumeClaim(TypedDict, total=False):
    claimName: str


class _Empty(TypedDict, total=False):
    pass


class _Ephemeral(TypedDict, total=False):
    volumeClaimTemplate: _Empty  # that it is there is enough


class _Volume(TypedDict, total=False):
    name: str
    persistentVolumeClaim: _VolumeClaim
    ephemeral: _Ephemeral


class _PodSpec(TypedDict, total=False):
    affinity: _Affinity
    containers: list[_Container]
    initContainers: list[_Container]
    nodeName: str
    nodeSelector: dict[str, str]
    overhead: _Quantities
    priority: int
    resourceClaims: list[_ClaimReference]
    resources: _Resources
    schedulingGates: list[_Gate]
    tolerations: list[dict[str, Any]]
    volumes: list[_Volume]


class _Condition(TypedDict, total=False):
    type: str
    status: str
    reason: str
    message: str


class _ContainerStatus(TypedDict, total=False):
    name: str
    allocatedResources: _Quantities
    resources: _Resources


class _PodStatus(TypedDict, total=False):
    allocatedResources: _Quantities
    conditions: list[_Condition]
    containerStatuses: list[_ContainerStatus]
    initContainerStatuses: list[_ContainerStatus]
    nominatedNodeName: str
    phase: str
    resourceClaimStatuses: list[dict[str, str]]
    resources: _Resources


class Pod(TypedDict, total=False):
    """core/v1"""

    apiVersion: str
    kind: str
    metadata: _PodMeta
    spec: _PodSpec
    status: _PodStatus


# Who wrote the allocation: controller/reconcile/release.py.
_StatusFields = TypedDict("_StatusFields", {"f:allocation": dict[str, Any]}, total=False)
_Fields = TypedDict("_Fields", {"f:status": _StatusFields}, total=False)


class _ManagedFields(TypedDict, total=False):
    manager: str
    subresource: str
    fieldsV1: _Fields


class _ClaimMeta(_Identity, total=False):
    namespace: str
    ownerReferences: list[_Owner]
    managedFields: list[_ManagedFields]


class _Requests(TypedDict, total=False):
    requests: list[dict[str, Any]]


class _ClaimSpec(TypedDict, total=False):
    devices: _Requests


class _Result(TypedDict, total=False):
    adminAccess: bool
    consumedCapacity: _Quantities
    device: str
    driver: str
    pool: str
    request: str
    shareID: str


class _Amounts(TypedDict, total=False):
    size: int
    slices: int


class _Opaque(TypedDict, total=False):
    driver: str
    parameters: _Amounts


class _Config(TypedDict, total=False):
    opaque: _Opaque
    requests: list[str]


class _Results(TypedDict, total=False):
    config: list[_Config]
    results: list[_Result]


class _Allocation(TypedDict, total=False):
    devices: _Results
    nodeSelector: dict[str, Any]


class _Consumer(TypedDict, total=False):
    name: str
    uid: str


class _ClaimStatus(TypedDict, total=False):
    allocation: _Allocation
    reservedFor: list[_Consumer]


class ClaimInUse(TypedDict, total=False):
    """resource.k8s.io/v1, ResourceClaim"""

    apiVersion: str
    kind: str
    metadata: _ClaimMeta
    spec: _ClaimSpec
    status: _ClaimStatus


class _NodeMeta(_Identity, total=False):
    labels: dict[str, str]


class _NodeSpec(TypedDict, total=False):
    taints: list[dict[str, Any]]
    unschedulable: bool


class _Allocatable(TypedDict, total=False):
    cpu: str
    memory: str
    pods: str


class _NodeCondition(TypedDict, total=False):
    type: str
    status: str


class _NodeStatus(TypedDict, total=False):
    allocatable: _Allocatable
    conditions: list[_NodeCondition]


class Node(TypedDict, total=False):
    """core/v1"""

    apiVersion: str
    kind: str
    metadata: _NodeMeta
    spec: _NodeSpec
    status: _NodeStatus


class _Pool(TypedDict, total=False):
    name: str
    generation: int
    resourceSliceCount: int


class _SliceSpec(TypedDict, total=False):
    allNodes: bool
    devices: msgspec.Raw
    driver: str
    nodeName: str
    perDeviceNodeSelection: bool
    pool: _Pool


class Slice(TypedDict, total=False):
    """resource.k8s.io/v1, ResourceSlice"""

    apiVersion: str
    kind: str
    metadata: _Identity
    spec: _SliceSpec


class DeviceClass(TypedDict, total=False):
    """resource.k8s.io/v1"""

    apiVersion: str
    kind: str
    metadata: _Identity
    spec: dict[str, Any]


class _Taint(TypedDict, total=False):
    key: str
    value: str
    effect: str


class _TaintRuleSpec(TypedDict, total=False):
    deviceSelector: dict[str, Any]
    taint: _Taint


class TaintRule(TypedDict, total=False):
    """resource.k8s.io/v1, DeviceTaintRule"""

    apiVersion: str
    kind: str
    metadata: _Identity
    spec: _TaintRuleSpec


class _TemplateMeta(_Identity, total=False):
    namespace: str
    labels: dict[str, str]


class ClaimTemplate(TypedDict, total=False):
    """resource.k8s.io/v1, ResourceClaimTemplate"""

    apiVersion: str
    kind: str
    metadata: _TemplateMeta
