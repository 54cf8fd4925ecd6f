"""Of a pod all that is read is decoded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from bench import lists
from controller.cache import nodes, pods
from controller.cache.assigned_pod import AssignedPod
from controller.cache.host_ports import host_ports
from controller.cache.keys import uid_of
from controller.cache.pod_requests import pod_requests
from controller.cache.pod_terms import affinity_terms, spread_constraints
from controller.informers.decoders import decoders
from controller.write.volumes import read_volumes
from dra_driver.kube.api import Api
from dra_driver.kube.encode import encode
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object, claim_names
from dra_driver.model.claims.usage_sets import usage_sets
from tests.unit.controller.informers.decoded import View, decoded

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "zone",
                "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                "namespaces": ["other"],
                "namespaceSelector": {"matchLabels": {"team": "x"}},
            }
        ]
    }
}


def waiting_pod() -> Object:
    """One that has a value wherever the controller looks."""
    found = copy.deepcopy(lists.pod(7))
    del found["spec"]["nodeName"]
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found["spec"] |= {
        "priority": 5,
        "schedulingGates": [{"name": "gcu.enflame.com/allocation"}],
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": {"required": "this"}, "podAffinity": {}, **APART},
        "topologySpreadConstraints": [
            {
                "topologyKey": "zone",
                "maxSkew": 2,
                "minDomains": 3,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "x"}},
                "nodeAffinityPolicy": "Ignore",
                "nodeTaintsPolicy": "Honor",
            }
        ],
        "resourceClaims": [
            {"name": "gcu", "resourceClaimName": "claim-7"},
            {"name": "made", "resourceClaimTemplateName": "t"},
            {"name": "limits", "resourceClaimTemplateName": "enflame-gcu-1"},
        ],
        "initContainers": [
            {
                "name": "first",
                "restartPolicy": "Always",
                "resources": {"claims": [{"name": "made"}]},
                "ports": [
                    {"containerPort": 80},
                    {"containerPort": 80, "hostPort": 80, "hostIP": "::1", "protocol": "UDP"},
                ],
            }
        ],
        "overhead": {"memory": "120Mi"},
        "resources": {"requests": {"memory": "9Gi", "cpu": "1"}},
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
            {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "c", "configMap": {"name": "settings"}},
        ],
    }
    found["status"] |= {
        "nominatedNodeName": "node-1",
        "allocatedResources": {"cpu": "50"},
        "resources": {"requests": {"memory": "10Gi"}},
        "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "made-7"}],
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/3 nodes are available",
            }
        ],
    }
    return found


def resized_pod() -> Object:
    """One whose containers have other resources than they were given first."""
    found = copy.deepcopy(lists.pod(7))
    found["spec"]["containers"][0]["resources"]["requests"] = {"memory": "900Gi"}
    found["spec"]["initContainers"] = [
        {
            "name": name,
            "restartPolicy": restart,
            "resources": {"requests": {"cpu": cpu}},
        }
        for name, restart, cpu in (("sidecar", "Always", "5"), ("first", "OnFailure", "90"))
    ]
    statuses = [*found["status"]["containerStatuses"], {"name": "sidecar"}]
    for each in statuses:
        each["resources"] = {"requests": {"cpu": "8"}}
        each["allocatedResources"] = {"memory": "30Gi"}
    found["status"] |= {
        "containerStatuses": statuses[:-1],
        "initContainerStatuses": statuses[-1:],
    }
    return found


class _Volumes:
    """An API server that has every volume, and tells by its name where it is."""

    def get(self, resource: object, name: str, *, namespace: str = "") -> Object:
        return {
            "spec": {"volumeName": name, "nodeAffinity": {"required": name}},
            "metadata": {},
        }


def volumes(pod: Object) -> object:
    api: Any = _Volumes()
    found: Api = api
    return read_volumes(found, pod)


def uses(pod: Object) -> object:
    return usage_sets(
        pod, {"gcu": "u1", "made": "u2"}, dict.fromkeys(("u1", "u2"), frozenset("rs"))
    )


@pytest.mark.parametrize(
    "make",
    [waiting_pod, lambda: lists.pod(3), resized_pod],
    ids=["waiting", "running", "resized"],
)
@pytest.mark.parametrize(
    "view",
    [
        pods.key_of,
        uid_of,
        pods.node_name,
        pods.nominated_node,
        pods.concerns_us,
        claim_names,
        pods.template_names,
        lambda pod: pods.waits_for_template(pod, "enflame-gcu-1"),
        pods.is_done,
        pods.is_deleting,
        pods.gates,
        pods.verdict,
        pods.urgency,
        pods.workload,
        nodes.demand,
        pod_requests,
        host_ports,
        spread_constraints,
        lambda pod: affinity_terms(pod, "podAntiAffinity"),
        volumes,
        uses,
    ],
)
def test_of_a_pod(view: View, make: Callable[[], Object]) -> None:
    pod = make()
    assert view(decoded(PODS, pod)) == view(pod)


def test_of_a_pod_without_claims_only_what_it_takes_of_its_node() -> None:
    pod = resized_pod()
    del pod["spec"]["resourceClaims"]
    pod["metadata"] |= {"labels": {"app": "x"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    pod["spec"] |= {"affinity": APART, "priority": 7}
    pod["spec"]["containers"][0]["ports"] = [{"hostPort": 80}, {"containerPort": 81}]
    for reason in ("Infeasible", "Deferred"):
        pod["status"]["conditions"].append(
            {"type": "PodResizePending", "status": "True", "reason": reason}
        )
        found = decoded(PODS, pod)
        assert AssignedPod.of(found) is AssignedPod.of(pod)
        assert found["spec"]["containers"][0]["ports"] == [{"hostPort": 80}]
        assert (pods.key_of(found), uid_of(found)) == (pods.key_of(pod), uid_of(pod))
        assert pods.node_name(found) == pods.node_name(pod)
        assert not {"tolerations", "volumes"} & found["spec"].keys()
        pod["status"]["conditions"].pop()


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"containers": [{"name": 1}]}, id="of another type"),
        pytest.param({"containers": [None]}, id="null"),
        pytest.param({"resourceClaims": [], "schedulingGates": [{}]}, id="without a field"),
    ],
)
def test_what_differs_from_the_model_is_handed_on_with_all_fields(changes: Object) -> None:
    """Who reads it sets it aside, by its name."""
    pod = waiting_pod()
    pod["spec"] |= changes
    assert decoded(PODS, pod) == pod


def test_replicas_have_their_parts_in_common() -> None:
    decoder = decoders()[PODS]
    one, other = (decoder.decode(encode(lists.pod(number))) for number in (1, 2))
    for part in ("containers", "tolerations"):
        assert one["spec"][part] is other["spec"][part]
    assert one["metadata"]["ownerReferences"] is other["metadata"]["ownerReferences"]
