"""The control plane of the tests is a real one, with real restrictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kubernetes import client

from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError, CommandError
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod

pytestmark = pytest.mark.control_plane


def test_python_client_reaches_it_from_the_machine(control_plane: Cluster) -> None:
    with client.ApiClient(control_plane.client_configuration()) as api:
        version = client.VersionApi(api).get_code()
    assert version.git_version == f"v{control_plane.release.version}"


def test_helm_reaches_it(control_plane: Cluster) -> None:
    assert json.loads(control_plane.helm("list", "--output=json")) == []


def test_resource_api_is_served(control_plane: Cluster) -> None:
    served = control_plane.kubectl("api-resources", "--api-group=resource.k8s.io")
    assert "resource.k8s.io/v1 " in served
    assert "resourceslices" in served


def test_pod_is_bound_to_a_node_object(control_plane: Cluster, namespace: str) -> None:
    control_plane.add_node_object("bound-to", labels={"test": "bound"})
    control_plane.apply(pod("one", namespace, nodeSelector={"test": "bound"}))

    def node() -> str | None:
        found = control_plane.get("pod", "one", "--namespace", namespace)
        name: str | None = found["spec"].get("nodeName")
        return name

    assert wait_until(node, PATIENCE, "pod one to be bound") == "bound-to"


def test_node_identity_sees_no_secrets(control_plane: Cluster) -> None:
    as_node = ("--as=system:node:bound-to", "--as-group=system:nodes")
    with pytest.raises(CommandError, match="forbidden"):
        control_plane.kubectl("get", "secrets", "--all-namespaces", *as_node)


_GATE = "DRAResourceClaimGranularStatusAuthorization"


@pytest.mark.parametrize("user", ["system:kube-scheduler", "system:kube-controller-manager"])
def test_component_identity_may_not_grant_itself_more(control_plane: Cluster, user: str) -> None:
    grant = ("create", "clusterrolebinding", "more", "--clusterrole=cluster-admin")
    with pytest.raises(CommandError, match="forbidden"):
        control_plane.kubectl(*grant, f"--user={user}", f"--as={user}")


@pytest.mark.matrix
def test_second_cluster_beside_it_has_other_flags(control_plane: Cluster) -> None:
    settings = Settings(
        "beside",
        feature_gates={_GATE: False},
        extra_flags={"kube-scheduler": ("--v=3",)},
    )
    beside = Cluster.up(settings, owner=own_process())
    try:
        assert beside.control_plane.server != control_plane.control_plane.server
        assert "--v=3" in _command_line(beside, "kube-scheduler")
        assert f"--feature-gates={_GATE}=false" in _command_line(beside, "kube-apiserver")
        assert Cluster.attach("beside").get("namespace", "default")
        with pytest.raises(ClusterError, match="is up already"):
            Cluster.up(settings, owner=own_process())
    finally:
        beside.down()
    with pytest.raises(ClusterError, match="no cluster 'beside' is up"):
        Cluster.attach("beside")


def _command_line(cluster: Cluster, component: str) -> list[str]:
    process = cluster.processes.get(component)
    return Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
