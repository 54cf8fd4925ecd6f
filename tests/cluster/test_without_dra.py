"""A Kubernetes without DRA comes up, and runs pods as any does."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.workloads import pod, wait_for_pods

pytestmark = pytest.mark.cluster


def test_all_of_it_is_of_that_version(old_cluster: Cluster) -> None:
    nodes = old_cluster.get("nodes")["items"]
    assert len(nodes) == len(old_cluster.nodes)
    for node in nodes:
        assert node["status"]["nodeInfo"]["kubeletVersion"] == f"v{old_cluster.release.version}"
    served = old_cluster.kubectl("get", "--raw", "/version")
    assert f'"gitVersion": "v{old_cluster.release.version}"' in served


def test_there_is_no_dra(old_cluster: Cluster) -> None:
    served = old_cluster.kubectl("api-versions").split()
    assert "apps/v1" in served
    assert not [each for each in served if each.startswith("resource.k8s.io/")]


def test_a_plain_pod_runs_on_each_node(old_cluster: Cluster, namespace: str) -> None:
    names = [node.name for node in old_cluster.nodes]
    old_cluster.apply(*(pod(name, namespace, nodeName=name) for name in names))
    wait_for_pods(old_cluster, namespace, *names)
    for name in names:
        assert old_cluster.execute(namespace, name, "hostname").strip() == name
        address = old_cluster.execute(namespace, name, "sh", "-c", "echo $KUBERNETES_SERVICE_HOST")
        assert address.strip() == "10.96.0.1"


def test_a_service_is_reached(old_cluster: Cluster, namespace: str) -> None:
    """The API server's, by kube-proxy."""
    kubectl = (old_cluster.programs / "kubectl").resolve().parent / "kubectl"
    programs = str(old_cluster.programs.parent)
    volumes = [{"name": "programs", "hostPath": {"path": programs}}]
    caller = pod("caller", namespace, volumes=volumes)
    mount = {"name": "programs", "mountPath": programs, "readOnly": True}
    caller["spec"]["containers"][0]["volumeMounts"] = [mount]
    old_cluster.apply(caller)
    wait_for_pods(old_cluster, namespace, "caller")
    said = old_cluster.execute(namespace, "caller", str(kubectl), "auth", "whoami")
    assert f"system:serviceaccount:{namespace}:default" in said
