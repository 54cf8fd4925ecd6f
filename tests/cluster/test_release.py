"""The files of a release, each used as somebody takes it: nothing of this checkout helps it."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from dra_driver.model.names import CLASS_WHOLE
from dra_driver.version import VERSION
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.workloads import pod, wait_for_pods
from tests.control_plane.objects import everything
from tests.release.__main__ import main
from tests.release.manifests import MODES

pytestmark = [pytest.mark.matrix]

_PYTHON: Final = "/usr/bin/python3"
_REPOSITORY: Final = "registry.example.com/gcu-dra-driver"
_IMAGE: Final = f"{_REPOSITORY}:{VERSION}"
_SCOPE: Final = f"--namespace={DRIVER_NAMESPACE}"


@pytest.fixture(scope="module")
def release(driver_image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make release DRAFT=yes REPOSITORY=…` writes, of an image that is there."""
    folder = tmp_path_factory.mktemp("release") / "files"
    chosen = (f"--version={VERSION}", f"--repository={_REPOSITORY}", f"--archive={driver_image}")
    assert main(["release", "--draft", f"--out={folder}", *chosen]) == 0
    return folder


@pytest.fixture(scope="module")
def node(release: Path, cluster_report: Callable[[str], None]) -> Iterator[Cluster]:
    """A cluster of one node, whose containerd has imported the release's image."""
    settings = Settings(f"release-{os.getpid()}", nodes=1)
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    cluster.nodes[0].ctr("images", "import", str(release / f"gcu-dra-driver-{VERSION}-image.tar"))
    yield cluster
    cluster.down()


def test_sums_are_of_all_files(release: Path) -> None:
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    found = subprocess.run(command, cwd=release, capture_output=True, text=True, check=True)
    assert {line.partition(":")[0] for line in found.stdout.splitlines()} == {
        each.name for each in release.iterdir() if each.name != "SHA256SUMS"
    }


def test_the_program_runs_without_the_virtual_environment(release: Path, tmp_path: Path) -> None:
    """From the archive that krew takes, by the name that its manifest has."""
    [platform] = yaml.safe_load((release / "gcu.krew.yaml").read_text())["spec"]["platforms"]
    with tarfile.open(release / platform["uri"].rpartition("/")[2]) as archive:
        archive.extract(platform["bin"], tmp_path, filter="data")
    program = tmp_path / platform["bin"]
    assert program.read_bytes() == (release / "kubectl-gcu").read_bytes()

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [_PYTHON, "-I", str(program), *arguments]
        environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            command, env=environment, cwd="/", capture_output=True, text=True, check=False
        )

    assert run("--version").stdout == f"kubectl-gcu {VERSION}\n"
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"server": "https://127.0.0.1:1"}
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        f"clusters: [{{name: a, cluster: {cluster}}}]\nusers: [{{name: a, user: {{}}}}]\n"
    )
    for command in ("inspect", "view", "doctor"):
        found = run(command, f"--kubeconfig={kubeconfig}")
        assert found.returncode == 1, found
        assert "GET /version" in found.stderr or "127.0.0.1" in found.stderr


def test_containerd_runs_the_image(node: Cluster) -> None:
    command = ("run", "--rm", _IMAGE, "release", "gcu-dra-controller", "--version")
    assert node.nodes[0].ctr(*command).strip() == f"gcu-dra-controller {VERSION}"


def test_helm_installs_the_archive(node: Cluster, release: Path, tmp_path: Path) -> None:
    """A pod gets a simulated GCU, and `kubectl-gcu` of the release shows it."""
    chart = release / f"gcu-dra-driver-{VERSION}.tgz"
    chosen = (f"--set=image.repository={_REPOSITORY}", "--set=simulation.enabled=true")
    wait = ("--wait", "--timeout=300s", "--set=controller.logFile.enabled=true")
    node.helm("install", "gcu", str(chart), _SCOPE, "--create-namespace", *chosen, *wait)
    one_card = {"name": "gcu", "exactly": {"deviceClassName": CLASS_WHOLE}}
    user = pod("user", "default", resourceClaims=[{"name": "gcu", "resourceClaimName": "one"}])
    user["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gcu"}]}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"devices": {"requests": [one_card]}},
    }
    node.apply(claim, user)
    wait_for_pods(node, "default", "user")
    log = node.nodes[0].run(["cat", "/var/log/enflame/controller/gcu-dra-controller.log"])
    assert f"gcu-dra-controller {VERSION}" in log
    command = [_PYTHON, "-I", str(release / "kubectl-gcu"), "inspect"]
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(node.kubeconfig)}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "default/user" in shown.stdout
    node.kubectl("delete", "pod/user", "resourceclaim/one", "--namespace=default")
    node.helm("uninstall", "gcu", _SCOPE, "--wait")
    node.kubectl("delete", "namespace", DRIVER_NAMESPACE)


@pytest.mark.parametrize("name", MODES)
def test_kubectl_applies_each_install_file(node: Cluster, release: Path, name: str) -> None:
    """Twice, as to upgrade, and deletes all of it. The file for this Kubernetes also starts."""
    before = everything(node)
    file = release / f"install-{name}.yaml"
    for _ in range(2):
        node.kubectl("apply", "--server-side", f"--filename={file}")
    made = everything(node) - before
    assert f"DaemonSet/{DRIVER_NAMESPACE}/gcu-dra-driver-agent" in made
    if name == "claims":
        assert f"DeviceClass//{CLASS_WHOLE}" in made
        node.wait("rollout", "status", _SCOPE, "deployment/gcu-dra-driver-controller")
    node.kubectl("delete", f"--filename={file}")
    assert everything(node) - before == set()
