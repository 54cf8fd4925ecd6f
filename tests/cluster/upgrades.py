"""A running cluster changes its version of Kubernetes: whole, or one part after the other.

etcd and the kubelets keep what they have on disk. containerd goes on, and with it all containers.
Each function returns the cluster as it is afterwards; the one that it was given is of no use any
more. All raise ClusterError.
"""

from __future__ import annotations

from dataclasses import replace

from tests.cluster import state
from tests.cluster.build import Report, build_all, silent
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import ControlPlane
from tests.cluster.errors import ClusterError
from tests.cluster.node import Node
from tests.cluster.pki import Authority
from tests.cluster.teardown import KEEPER


def upgraded(cluster: Cluster, kubernetes: str, report: Report = silent) -> Cluster:
    """All of Kubernetes is stopped, and started anew at that version. Returns when the nodes are
    ready."""
    for node in cluster.nodes:
        node.stop_kubelet()
        node.stop_proxy()
    new = with_control_plane(cluster, kubernetes, report)
    for node in new.nodes:
        upgrade_node(new, node)
    new.wait_ready()
    report(f"{new.name}: all nodes are ready again")
    return new


def with_control_plane(cluster: Cluster, kubernetes: str, report: Report = silent) -> Cluster:
    """The control plane is of that version; the nodes go on as they are. Returns when the control
    plane is ready."""
    new = _at(cluster, kubernetes, report)
    new.control_plane.start(_authority(new))
    report(f"{new.name}: control plane {kubernetes} is ready")
    return new


def with_newer_api_server(cluster: Cluster, kubernetes: str, report: Report = silent) -> Cluster:
    """There are two API servers: one of that version, for nodes and users, and one of the version
    before, to which kube-scheduler and kube-controller-manager keep, which are of that version,
    too. Returns when all are ready."""
    new = _at(cluster, kubernetes, report)
    older = ControlPlane.behind(cluster.context)
    authority = _authority(new)
    older.start(authority)
    new.control_plane.start_api_server(authority)
    report(f"{new.name}: an API server {kubernetes} is beside one {cluster.settings.kubernetes}")
    return new


def upgrade_node(cluster: Cluster, node: Node) -> None:
    """Give a node of the cluster the kubelet and the proxy of the cluster's version. Its pods run
    on; it is not waited for."""
    node.stop_kubelet()
    node.stop_proxy()
    node.write_files(_authority(cluster), cluster.control_plane)
    node.start_kubelet()
    node.start_proxy()


def _at(cluster: Cluster, kubernetes: str, report: Report) -> Cluster:
    """The cluster without its control plane, recorded as one of that version."""
    programs = build_all(kubernetes, report)
    cluster.control_plane.stop()
    found = state.load(cluster.name)
    if found is None:
        raise ClusterError(f"the cluster {cluster.name!r} is gone")
    # It guards the cluster as it was recorded when the keeper started.
    cluster.processes.stop(KEEPER)
    found = replace(found, settings=replace(cluster.settings, kubernetes=kubernetes))
    found.save()
    new = Cluster(found, programs)
    new.guard()
    return new


def _authority(cluster: Cluster) -> Authority:
    return Authority(cluster.directory / "pki")
