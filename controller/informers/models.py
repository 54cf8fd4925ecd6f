"""The fields that the controller reads of each kind of object (`dra_driver.kube.decode.Typed`). A
claim that is written back has all its fields: `controller.informers.decoders`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dra_driver.model.names import ANNOTATION_CARDS, ANNOTATION_PACK_NODES

_QUANTITIES: Final = dict[str, str]
_IDENTITY: Final = {"name": str, "uid": str, "resourceVersion": str, "deletionTimestamp": str}
_NAMESPACED: Final = _IDENTITY | {"namespace": str}
_OWNERS: Final = [{"controller": bool, "kind": str, "uid": str}]
_RESOURCES: Final = {"claims": [_QUANTITIES], "requests": _QUANTITIES}
_POD_AFFINITY: Final = {"requiredDuringSchedulingIgnoredDuringExecution": [dict[str, Any]]}
_VARIABLES: Final = [{"name": str, "value": str, "valueFrom": {}}]  # that it is there is enough
_CONTAINERS: Final = [
    {
        "name": str,
        "env": _VARIABLES,
        "ports": [{"hostIP": str, "hostPort": int, "protocol": str}],
        "resources": _RESOURCES,
        "restartPolicy": str,
    }
]
_CONTAINER_STATUSES: Final = [
    {"name": str, "allocatedResources": _QUANTITIES, "resources": _RESOURCES}
]

# core/v1
POD: Final = {
    "metadata": _NAMESPACED
    | {"creationTimestamp": str, "labels": dict[str, str], "ownerReferences": _OWNERS},
    "spec": {
        "affinity": {
            "nodeAffinity": dict[str, Any],
            "podAffinity": _POD_AFFINITY,
            "podAntiAffinity": _POD_AFFINITY,
        },
        "containers": _CONTAINERS,
        "ephemeralContainers": [{"name": str, "env": _VARIABLES}],
        "initContainers": _CONTAINERS,
        "nodeName": str,
        "nodeSelector": dict[str, str],
        "overhead": _QUANTITIES,
        "preemptionPolicy": str,
        "priority": int,
        "resourceClaims": [
            {"name": str, "resourceClaimName": str, "resourceClaimTemplateName": str}
        ],
        "resources": _RESOURCES,
        "runtimeClassName": str,
        "schedulerName": str,
        "schedulingGroup": {"podGroupName": str},
        "schedulingGates": [{"name": str}],
        "tolerations": [dict[str, Any]],
        "topologySpreadConstraints": [dict[str, Any]],
        "volumes": [
            {
                "name": str,
                "persistentVolumeClaim": {"claimName": str},
                "ephemeral": {"volumeClaimTemplate": {}},  # the same
                "hostPath": {"path": str},
            }
        ],
    },
    "status": {
        "allocatedResources": _QUANTITIES,
        "conditions": [{"type": str, "status": str, "reason": str, "message": str}],
        "containerStatuses": _CONTAINER_STATUSES,
        "initContainerStatuses": _CONTAINER_STATUSES,
        "extendedResourceClaimStatus": {"resourceClaimName": str},
        "nominatedNodeName": str,
        "phase": str,
        "resourceClaimStatuses": [dict[str, str]],
        "resources": _RESOURCES,
    },
}
NODE: Final = {
    "metadata": _IDENTITY | {"labels": dict[str, str], "annotations": {ANNOTATION_CARDS: str}},
    "spec": {"taints": [dict[str, Any]], "unschedulable": bool},
    "status": {
        "allocatable": _QUANTITIES,
        "conditions": [{"type": str, "status": str}],
        "nodeInfo": {"kubeletVersion": str},
    },
}
NAMESPACE: Final = {"metadata": _IDENTITY | {"labels": dict[str, str]}}

# resource.k8s.io/v1
CLAIM_IN_USE: Final = {
    "metadata": _NAMESPACED
    | {
        "ownerReferences": _OWNERS,
        # Who wrote the allocation: controller/cache/claims.py.
        "managedFields": [
            {
                "manager": str,
                "subresource": str,
                "fieldsV1": {"f:status": {"f:allocation": dict[str, Any]}},
            }
        ],
    },
    "spec": {"devices": {"requests": [dict[str, Any]]}},
    "status": {
        "allocation": {
            "devices": {
                "config": [
                    {
                        "opaque": {
                            "driver": str,
                            "parameters": {"size": int, "slices": int},
                        },
                        "requests": [str],
                    }
                ],
                "results": [
                    {
                        "adminAccess": bool,
                        "consumedCapacity": _QUANTITIES,
                        "device": str,
                        "driver": str,
                        "pool": str,
                        "request": str,
                        "shareID": str,
                    }
                ],
            },
            "nodeSelector": dict[str, Any],
        },
        "reservedFor": [{"name": str, "uid": str}],
    },
}
SLICE: Final = {
    "metadata": _IDENTITY,
    "spec": {
        "allNodes": bool,
        "devices": msgspec.Raw,
        "driver": str,
        "nodeName": str,
        "perDeviceNodeSelection": bool,
        "pool": {"name": str, "generation": int, "resourceSliceCount": int},
    },
}
DEVICE_CLASS: Final = {"metadata": _IDENTITY, "spec": dict[str, Any]}
TAINT_RULE: Final = {
    "metadata": _IDENTITY,
    "spec": {
        "deviceSelector": dict[str, Any],
        "taint": {"key": str, "value": str, "effect": str},
    },
}
CLAIM_TEMPLATE: Final = {"metadata": _NAMESPACED | {"labels": dict[str, str]}}

# scheduling.k8s.io/v1beta1
POD_GROUP: Final = {
    "metadata": _NAMESPACED | {"annotations": {ANNOTATION_PACK_NODES: str}},
    "spec": {
        "schedulingConstraints": {"topology": [{"key": str}]},
        "schedulingPolicy": {"gang": {"minCount": int}},
    },
    "status": {"conditions": [{"type": str, "status": str, "message": str}]},
}
