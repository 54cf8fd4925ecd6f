"""Users of the vendor's gcushare move over on a cluster without DRA, by the steps of the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dra_driver.device_plugin.node_annotations import DRS_CAPACITY, GCUSHARE, SHARED_CAPACITY
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS, RESOURCE_SHARED
from tests.cluster.images import SCHEDULER_IMAGE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod, wait_for_pods
from tests.e2e.installation import CARDS, CHART, CHECKOUT
from tests.e2e.page_steps import Command, filled, page_steps
from tests.e2e.vendor_plugin import FOLDER, SLICES, SOCKET
from tests.e2e.without_dra import SCHEDULER, OldInstallation

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]

PAGE = CHECKOUT / "docs" / "user" / "migrating-from-gcushare.md"
STEPS = page_steps(PAGE, "Step by step, on a cluster without DRA")
TOLD = {ANNOTATION_CARDS, SHARED_CAPACITY, DRS_CAPACITY}
# As the vendor's plugin writes them: of a node whose first card it knows alone.
THEIRS = {
    SHARED_CAPACITY: '{"0":6}',
    DRS_CAPACITY: '{"devices":[{"index":"0","minor":"0","capacity":6}],"profiles":{"1g.6gb":"0"}}',
}

Object = dict[str, Any]


def deployment(namespace: str) -> Object:
    """Two replicas with slices, for the vendor's scheduler."""
    spec = pod("web", namespace, schedulerName="gcushare-scheduler")["spec"]
    [container] = spec["containers"]
    container["resources"] = {"limits": {RESOURCE_SHARED: "2"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": spec | {"terminationGracePeriodSeconds": 1},
            },
        },
    }


class Administrator:
    """The cluster and one node of it, as their administrator has them in hand."""

    def __init__(self, driver: OldInstallation, namespace: str) -> None:
        self.driver = driver
        self.cluster = driver.cluster
        self.namespace = namespace
        self.node = min(driver.machines)
        self.machine = driver.machine(self.node)
        self._values = driver.cluster.directory / "migration.json"
        ours = driver.values()
        # What the page need not say: machines are simulated, and a newer server plays this one.
        values = {name: ours[name] for name in ("simulation", *driver.cluster.release.chart_values)}
        values["extender"] = {"schedulerFlags": ours["extender"]["schedulerFlags"]}
        self._values.write_text(json.dumps(values))

    def follow(self, command: Command, **values: str) -> str:
        """Run a command of the page, and give its output."""
        program, *words = filled(
            command,
            NAMESPACE=self.namespace,
            REPOSITORY="localhost/gcu-dra-driver",
            IMAGE=SCHEDULER_IMAGE,
            **values,
        )
        match program:
            case "kubectl":
                return self.cluster.kubectl(*words)
            case "helm":
                here = [str(CHART) if word.startswith("charts/") else word for word in words]
                return self.cluster.helm(*here, f"--values={self._values}")
            case "efsmi":
                answer = self.machine.efsmi(*words)
                assert answer.exit_code == 0
                return answer.stdout.decode()
        raise AssertionError(f"the page has {program}, which nobody runs here")

    def metadata(self, node: str) -> Object:
        found: Object = self.cluster.get("node", node)["metadata"]
        return found

    def pods(self) -> list[Object]:
        found: list[Object] = self.cluster.get("pods", f"--namespace={self.namespace}")["items"]
        return found

    def wait_for_replicas(self, count: int) -> list[Object]:
        """So many pods and no more, whether or not they run."""
        wait_until(lambda: len(self.pods()) == count, PATIENCE, f"{count} pods")
        return self.pods()

    def wait_until_ready(self) -> None:
        names = [each["metadata"]["name"] for each in self.pods()]
        wait_for_pods(self.cluster, self.namespace, *names)

    def bind(self, pod: str) -> None:
        """As the vendor's scheduler would."""
        target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": self.namespace},
            "target": target,
        }
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/binding"
        command = ("create", f"--raw={path}", "--filename=-")
        self.cluster.kubectl(*command, stdin=json.dumps(binding))


@pytest.fixture(scope="module")
def restored(without_dra: OldInstallation) -> Iterator[OldInstallation]:
    """This driver, which is there again after all tests."""
    yield without_dra
    without_dra.install()


@pytest.fixture
def admin(restored: OldInstallation, namespace: str) -> Administrator:
    """On whose cluster this driver is not, or not any more."""
    if restored.is_installed():
        restored.wait_for_rest()
        restored.uninstall()
        restored.clear_nodes()
    return Administrator(restored, namespace)


@pytest.fixture
def vendor(admin: Administrator) -> Iterator[subprocess.Popen[bytes]]:
    """The vendor's device plugin on the administrator's node, with what it tells there."""
    admin.cluster.kubectl("label", "node", admin.node, f"{GCUSHARE}=true")
    told = [f"{key}={value}" for key, value in THEIRS.items()]
    admin.cluster.kubectl("annotate", "node", admin.node, *told)
    enter = admin.cluster.node(admin.node).enter()
    command = [*enter, sys.executable, "-m", "tests.e2e.vendor_plugin"]
    here = {**os.environ, "PYTHONPATH": str(CHECKOUT)}  # the working directory is the node's
    with subprocess.Popen(command, env=here) as process:
        yield process
        process.kill()
    for each in admin.machine.instances():
        index = str(admin.machine.card(each.card).efsmi_index)
        admin.machine.efsmi("-i", index, "--drs", "--destroy-instance", str(each.id))
        admin.machine.efsmi("-i", index, "--drs", "off")


def test_an_uninstall_and_the_commands_of_the_page_clear_the_nodes(admin: Administrator) -> None:
    """Those that uninstall.md has after an uninstall."""
    for node in admin.driver.machines:
        assert admin.driver.traces(admin.cluster.node(node)) == set()
        metadata = admin.metadata(node)
        assert GCUSHARE not in metadata["labels"]
        assert not TOLD & metadata.get("annotations", {}).keys()


def test_users_move_over_as_the_page_says(
    admin: Administrator, vendor: subprocess.Popen[bytes]
) -> None:
    driver, cluster, machine = admin.driver, admin.cluster, admin.machine
    wait_until(
        lambda: driver.allocatable(admin.node, Mode.SHARED) == SLICES, PATIENCE, "slices by others"
    )
    manifest = deployment(admin.namespace)
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {GCUSHARE: "true"}
    cluster.apply(manifest)
    for replica in admin.wait_for_replicas(manifest["spec"]["replicas"]):
        admin.bind(replica["metadata"]["name"])
    admin.wait_until_ready()
    machine.efsmi("-i", "0", "--drs", "on")
    machine.efsmi("-i", "0", "--drs", "--create-instance", "0")

    replicas, end, listing, destroy, off = STEPS[1]
    [(name, count)] = [line.split() for line in admin.follow(replicas).splitlines()[1:]]
    admin.follow(end, DEPLOYMENT=name)
    admin.wait_for_replicas(0)
    [left] = machine.instances()
    assert left.uuid in admin.follow(listing, INDEX="0")
    admin.follow(destroy, INDEX="0", ID=str(left.id))
    admin.follow(off, INDEX="0")

    assert STEPS[2] == ()
    vendor.kill()
    vendor.wait()
    assert cluster.node(admin.node).host_path(str(FOLDER / SOCKET)).exists()

    install, shown = STEPS[3]
    admin.follow(install)
    wait_until(driver.published, PATIENCE, "all cards to be counted")
    counts = dict(line.split() for line in admin.follow(shown).splitlines()[1:])
    assert counts == {node: str(SLICES * CARDS[name]) for node, name in driver.machines.items()}
    annotations = admin.metadata(admin.node)["annotations"]
    assert not any(annotations[key] == value for key, value in THEIRS.items())

    [start] = STEPS[4]
    admin.follow(start, DEPLOYMENT=name, REPLICAS=count)
    admin.wait_for_replicas(manifest["spec"]["replicas"])
    admin.wait_until_ready()
    for replica in admin.pods():
        assert replica["spec"]["schedulerName"] == SCHEDULER
        driver.assert_has_what_it_asks(replica)
    cluster.kubectl("delete", "deployment", "--all", f"--namespace={admin.namespace}")
