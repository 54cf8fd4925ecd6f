"""The agent's pod: what it may, and how it reaches the hardware."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.agent.settings import AgentSettings
from dra_driver.kube.http.cluster_config import SERVICE_ACCOUNT
from dra_driver.kubelet_api.sockets import Folders, Sockets
from dra_driver.model.claims.claim import Object
from tests.chart.helm import Helm, Values, environment
from tests.control_plane.pod import MEMORY

REAL: Values = {}
RUNTIME: Values = {"efsmi": {"runtimeClassName": "enflame"}}
SIMULATED: Values = {"simulation": {"enabled": True}}
UNPRIVILEGED = {
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


# Mounted over the container's own, it would hide the loader and the C library.
MOVED = {"/usr/lib": "/usr/node-lib"}


def host_paths(pod: Object) -> dict[str, str]:
    """Paths of the node below which the agent's container sees the node's own files, with their
    type; the same path in both, except that of `MOVED`."""
    volumes = {each["name"]: each.get("hostPath") for each in pod["volumes"]}
    found = {}
    for mount in pod["containers"][0]["volumeMounts"]:
        host_path = volumes[mount["name"]]
        if host_path is not None:
            path = host_path["path"]
            assert mount["mountPath"] == MOVED.get(path, path)
            found[path] = host_path["type"]
    return found


NODE = {
    "/var/lib/kubelet/plugins/gcu.enflame.com": "DirectoryOrCreate",
    "/var/lib/kubelet/plugins_registry": "Directory",
    "/var/lib/kubelet/pod-resources": "Directory",
    "/var/run/cdi": "DirectoryOrCreate",
}
DEVICE_PLUGIN = {"/var/lib/kubelet/device-plugins": "Directory"}


@pytest.mark.parametrize(
    ("values", "paths", "rights"),
    [
        (
            REAL,
            {
                "/dev": "Directory",
                "/usr/local/efsmi": "Directory",
                "/usr/lib": "Directory",
                "/var/lock": "Directory",
            },
            {"readOnlyRootFilesystem": True, "privileged": True},
        ),
        (RUNTIME, {}, UNPRIVILEGED),
        (SIMULATED, {"/var/lib/gcu-simulator": "DirectoryOrCreate"}, UNPRIVILEGED),
    ],
    ids=["a real node", "the vendor's runtime", "a simulation"],
)
def test_it_has_what_it_needs_of_the_node_and_no_more(
    helm: Helm, values: Values, paths: dict[str, str], rights: Object
) -> None:
    pod = helm.render(values).agent
    assert host_paths(pod) == NODE | DEVICE_PLUGIN | paths
    assert pod["containers"][0]["securityContext"] == rights
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)


@pytest.mark.parametrize(
    ("mode", "limits", "mounted"),
    [
        ("auto", True, True),
        ("auto", False, True),
        ("device-plugin", False, True),
        ("dra", True, True),
        ("dra", False, False),
    ],
    ids=["auto", "may go back to it", "device plugin", "counts the cards", "DRA alone"],
)
def test_the_device_plugins_folder_is_mounted_where_it_may_serve_there(
    helm: Helm, mode: str, limits: bool, mounted: bool
) -> None:
    pod = helm.render({"mode": mode, "legacyResources": {"enabled": limits}} | SIMULATED).agent
    assert (DEVICE_PLUGIN.items() <= host_paths(pod).items()) is mounted
    assert bool(set(DEVICE_PLUGIN) & set(host_paths(pod))) is mounted


@pytest.mark.parametrize(
    ("values", "host_root", "efsmi"),
    [
        (REAL, "/", "/usr/local/efsmi/efsmi"),
        (RUNTIME, "/", "efsmi"),
        (SIMULATED, "/var/lib/gcu-simulator", "/var/lib/gcu-simulator/bin/efsmi"),
        ({"efsmi": {"path": "/opt/efsmi"}}, "/", "/opt/efsmi"),
        ({"efsmi": {"path": "/opt/efsmi", **RUNTIME["efsmi"]}}, "/", "/opt/efsmi"),
    ],
    ids=["a real node", "the vendor's runtime", "a simulation", "a path", "a path and the runtime"],
)
def test_where_it_finds_the_hardware(
    helm: Helm, values: Values, host_root: str, efsmi: str
) -> None:
    environ = environment(helm.render(values).agent["containers"][0])
    assert (environ["GCU_HOST_ROOT"], environ["GCU_EFSMI_PATH"]) == (host_root, efsmi)


@pytest.mark.parametrize(
    ("values", "library"),
    [
        (REAL, "/usr/node-lib/libefml.so"),
        (RUNTIME, ""),
        (SIMULATED, ""),
        ({"efsmi": {"library": "/usr/node-lib/libefml-arm.so"}}, "/usr/node-lib/libefml-arm.so"),
    ],
    ids=["a real node", "the vendor's runtime", "a simulation", "another name"],
)
def test_where_it_finds_the_vendors_library(helm: Helm, values: Values, library: str) -> None:
    environ = environment(helm.render(values).agent["containers"][0])
    assert environ["GCU_EFSMI_LIBRARY"] == library


@pytest.mark.parametrize("values", [REAL, RUNTIME, SIMULATED])
def test_it_runs_as_its_memory_is_measured(helm: Helm, values: Values) -> None:
    environ = environment(helm.render(values).agent["containers"][0])
    assert environ.items() >= MEMORY.items()


def test_the_vendors_runtime_is_asked_for_all_cards_and_the_tool(helm: Helm) -> None:
    for values, wanted in ((RUNTIME, "enflame"), (REAL, None), (SIMULATED, None)):
        pod = helm.render(values).agent
        assert pod.get("runtimeClassName") == wanted
        environ = environment(pod["containers"][0])
        assert (
            environ.get("ENFLAME_VISIBLE_DEVICES"),
            environ.get("ENFLAME_DRIVER_CAPABILITIES"),
        ) == (("all", "utility") if wanted else (None, None))


@pytest.mark.parametrize(
    ("agent", "limit", "evict"),
    [
        ({}, "", ""),
        ({"errorLimit": 0, "evictOn": []}, "0", ""),
        ({"errorLimit": 2000000, "evictOn": ["lost", "rma"]}, "2000000", "lost,rma"),
    ],
    ids=["by default", "no error at all", "both"],
)
def test_what_ails_a_card_and_who_leaves_it(
    helm: Helm, agent: Values, limit: str, evict: str
) -> None:
    environ = environment(helm.render({"agent": agent}).agent["containers"][0])
    assert (environ["GCU_ERROR_LIMIT"], environ["GCU_EVICT_ON"]) == (limit, evict)


@pytest.mark.parametrize("mode", ["auto", "dra", "device-plugin"])
def test_in_which_way_pods_get_gcus(helm: Helm, mode: str) -> None:
    environ = environment(helm.render({"mode": mode}).agent["containers"][0])
    assert environ["GCU_MODE"] == mode


def test_only_what_is_named_writable_is(helm: Helm) -> None:
    mounts = helm.render().agent["containers"][0]["volumeMounts"]
    read_only = {each["mountPath"] for each in mounts if each.get("readOnly")}
    assert read_only == {
        "/dev",
        "/etc/gcu-dra-driver",
        "/var/lib/kubelet/pod-resources",
        "/var/run/secrets/kubernetes.io/serviceaccount",
        "/usr/local/efsmi",
        "/usr/node-lib",
    }


def test_the_end_is_told_outside_of_the_hosts_dev(helm: Helm) -> None:
    [container] = helm.render().agent["containers"]
    assert not container["terminationMessagePath"].startswith("/dev/")


def test_directories_follow_the_values(helm: Helm) -> None:
    pod = helm.render({"kubeletRootDir": "/data/kubelet", "cdiDir": "/etc/cdi"} | SIMULATED).agent
    paths = host_paths(pod)
    sockets = Sockets.of(Path("/data/kubelet"), "uid")
    assert {str(sockets.service.parent), str(sockets.registration.parent), "/etc/cdi"} <= set(paths)
    environ = environment(pod["containers"][0])
    state = AgentSettings(node_name="n", kubelet_root=Path(environ["GCU_KUBELET_ROOT"]))
    assert str(state.state_directory) in paths
    folders = Folders.of(Path("/data/kubelet"))
    assert {str(folders.plugins), str(folders.pod_resources.parent)} <= set(paths)
    assert environ["GCU_CDI_DIR"] == "/etc/cdi"


def test_values_of_kubernetes_reach_the_pod(helm: Helm) -> None:
    tolerations = [{"key": "a", "operator": "Exists"}]
    resources = {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    own = {"tolerations": tolerations, "resources": resources, "priorityClassName": "p"}
    pod = helm.render(
        {
            "agent": own,
            "imagePullSecrets": [{"name": "s"}],
            "image": {"repository": "r/i", "tag": "t", "pullPolicy": "Always"},
        }
    ).agent
    [container] = pod["containers"]
    assert pod["tolerations"] == tolerations
    assert pod["priorityClassName"] == "p"
    assert pod["imagePullSecrets"] == [{"name": "s"}]
    assert (container["image"], container["imagePullPolicy"]) == ("r/i:t", "Always")
    assert container["resources"]["limits"] == {"memory": "2Gi"}


DIGEST = f"sha256:{'0123456789abcdef' * 4}"


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ({"tag": "t"}, "r/i:t"),
        ({"digest": DIGEST}, f"r/i@{DIGEST}"),
        ({"tag": "t", "digest": DIGEST}, f"r/i@{DIGEST}"),
    ],
    ids=["tag", "digest", "both"],
)
def test_all_containers_have_the_image_of_the_tag_or_the_digest(
    helm: Helm, image: Values, reference: str
) -> None:
    rendered = helm.render({"image": {"repository": "r/i", **image}} | SIMULATED)
    pods = [
        each["spec"]["template"]["spec"] for each in rendered if "template" in each.get("spec", {})
    ]
    images = [
        container["image"]
        for pod in pods
        for container in [*pod.get("initContainers", ()), *pod["containers"]]
    ]
    assert (set(images), len(images)) == ({reference}, 4)


def test_the_agent_alone_has_the_token_as_kubernetes_mounts_it(helm: Helm) -> None:
    """At its path, with the same files, for an hour: Kubernetes' own is good for a year."""
    pod = helm.render(SIMULATED).agent
    assert pod["automountServiceAccountToken"] is False
    [volume] = [each for each in pod["volumes"] if "projected" in each]
    [token, authorities, namespace] = volume["projected"]["sources"]
    assert token == {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
    assert authorities["configMap"]["name"] == "kube-root-ca.crt"
    assert namespace["downwardAPI"]["items"][0]["path"] == "namespace"
    mounts = {
        container["name"]: {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        for container in [*pod["initContainers"], *pod["containers"]]
    }
    folder = str(SERVICE_ACCOUNT)
    assert folder not in mounts["simulated-machine"]
    assert mounts["agent"][folder] == {
        "name": volume["name"],
        "mountPath": folder,
        "readOnly": True,
    }
