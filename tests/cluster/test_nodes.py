"""Pods run on the nodes, and their network is that of any cluster."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod, wait_for_pods

pytestmark = pytest.mark.cluster

# Not `wget -T`, at which Debian's static busybox crashes.
_FETCH = ("timeout", "5", "wget", "-qO-")


@pytest.fixture
def pods(cluster: Cluster, namespace: str) -> tuple[str, ...]:
    """One web server on each node, named like the node, answering with the node's name."""
    names = tuple(node.name for node in cluster.nodes)
    for name in names:
        serve = f"echo serving; mkdir /www; echo {name} >/www/index.html; httpd -f -p 8080 -h /www"
        web = pod(
            name,
            namespace,
            serve,
            nodeName=name,
            volumes=[{"name": "programs", "hostPath": {"path": str(cluster.programs.parent)}}],
        )
        mount = {"name": "programs", "mountPath": str(cluster.programs.parent), "readOnly": True}
        web["spec"]["containers"][0]["volumeMounts"] = [mount]
        cluster.apply(web)
    wait_for_pods(cluster, namespace, *names)
    return names


def test_both_nodes_run_pods_that_reach_each_other(
    cluster: Cluster, namespace: str, pods: tuple[str, ...]
) -> None:
    addresses = {
        name: cluster.get("pod", name, "--namespace", namespace)["status"]["podIP"] for name in pods
    }
    for caller in pods:
        for called in pods:
            url = f"http://{addresses[called]}:8080/"
            answer = cluster.execute(namespace, caller, *_FETCH, url)
            assert answer.strip() == called, f"{caller} called {called}"


def test_pods_reach_a_service(cluster: Cluster, namespace: str, pods: tuple[str, ...]) -> None:
    cluster.kubectl("expose", "pod", pods[1], "--namespace", namespace, "--port=8080")
    service = cluster.get("service", pods[1], "--namespace", namespace)["spec"]["clusterIP"]

    def answer() -> bool:
        found = cluster.execute(namespace, pods[0], *_FETCH, f"http://{service}:8080/")
        return found.strip() == pods[1]

    # kube-proxy hears of the endpoint a moment after the pod is ready.
    wait_until(answer, PATIENCE, f"service {service} to answer", retry_on=(CommandError,))


def test_in_cluster_client_reaches_the_api_server(
    cluster: Cluster, namespace: str, pods: tuple[str, ...]
) -> None:
    kubectl = str((cluster.programs / "kubectl").resolve().parent / "kubectl")
    for name in pods:
        address = cluster.execute(namespace, name, "sh", "-c", "echo $KUBERNETES_SERVICE_HOST")
        assert address.strip() == "10.96.0.1"
        who = cluster.execute(namespace, name, kubectl, "auth", "whoami")
        assert f"system:serviceaccount:{namespace}:default" in who


def test_logs_and_exec(cluster: Cluster, namespace: str, pods: tuple[str, ...]) -> None:
    for name in pods:
        assert cluster.kubectl("logs", name, "--namespace", namespace) == "serving\n"
        assert cluster.execute(namespace, name, "hostname").strip() == name


def test_kubelet_restart_keeps_the_pods(
    cluster: Cluster, namespace: str, pods: tuple[str, ...]
) -> None:
    node = cluster.nodes[0]
    before = cluster.get("pod", pods[0], "--namespace", namespace)["status"]["containerStatuses"]
    previous = cluster.processes.get(node.component("kubelet"))
    node.restart_kubelet()
    assert not previous.alive()
    cluster.wait_ready()
    # A new kubelet is ready before it has heard of its pods.
    answer = wait_until(
        lambda: cluster.execute(namespace, pods[0], "hostname"),
        PATIENCE,
        f"exec in {pods[0]}",
        retry_on=(CommandError,),
    )
    assert answer.strip() == pods[0]
    after = cluster.get("pod", pods[0], "--namespace", namespace)["status"]["containerStatuses"]
    assert after[0]["containerID"] == before[0]["containerID"]


@pytest.mark.parametrize(
    "path", ["/var/lib/gcu-simulator/mark", "/var/run/cdi/mark", "/var/lib/kubelet/mark"]
)
def test_folders_of_the_nodes_are_their_own(cluster: Cluster, path: str) -> None:
    first, second = cluster.nodes
    first.run(["sh", "-c", f"echo here >{path}"])
    try:
        assert first.host_path(path).read_text() == "here\n"
        assert second.run(["sh", "-c", f"cat {path} 2>/dev/null || echo none"]) == "none\n"
        assert not second.host_path(path).exists()
    finally:
        first.run(["rm", path])


def test_diagnostics_show_what_a_person_would_look_for(cluster: Cluster, namespace: str) -> None:
    cluster.apply(pod("talker", namespace, "echo last words; exit 3", restartPolicy="Never"))
    wait_until(
        lambda: (
            cluster.get("pod", "talker", "--namespace", namespace)["status"]["phase"] == "Failed"
        ),
        PATIENCE,
        "pod talker to fail",
    )
    text = cluster.diagnostics(namespace, "not-there")
    for expected in (
        "last words",
        "Exit Code:    3",
        "Scheduled",
        f"end of {cluster.nodes[1].component('kubelet')}'s log",
        "end of kube-scheduler's log",
    ):
        assert expected in text
