"""A cluster without DRA is upgraded to a version with it, its nodes drained, under the same
release. The older version is the chosen one (``K8S``) if it has no DRA."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_driver.model.names import DRIVER
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.upgrades import upgraded
from tests.cluster.versions import DEFAULT_KUBERNETES, chosen_without_dra
from tests.cluster.waiting import PATIENCE
from tests.cluster.workloads import wait_for_pods
from tests.e2e.by_limits import DRS, SHARED, assert_has, claimed, limits_of
from tests.e2e.installation import Installation
from tests.e2e.without_dra import OldInstallation, asking

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]

_FOLDER = f"/var/lib/kubelet/plugins/{DRIVER}"
_SCOPE = "--namespace=default"
# By the version before. etcd reads what its last minor version wrote, no older one: 1.30 has 3.5,
# 1.34 has 3.6, and 1.37 has 3.7.
_NEXT = {"1.30.14": "1.34.4"}
_PODS = {
    "slices": asking("slices", "default", {SHARED: 2}, {SHARED: 1}),
    "instance": asking("instance", "default", {DRS: 3}),
}


@pytest.fixture
def old(cluster_report: Callable[[str], None], driver_image: Path) -> Iterator[OldInstallation]:
    """Of a cluster that no other test uses; helm says what is to be done after an upgrade."""
    settings = Settings(f"upgrade-{os.getpid()}", kubernetes=chosen_without_dra(), nodes=2)
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    try:
        cluster.load_image(driver_image)
        driver = OldInstallation(cluster)
        driver.load_scheduler()
        notes = driver.install()
        assert "After an upgrade to 1.34 or newer, run `helm upgrade` again" in notes
        yield driver
    finally:
        cluster.down()


def test_limits_become_claims(old: OldInstallation, cluster_report: Callable[[str], None]) -> None:
    """The same pods have the same before and after; the agents go on with their journals."""
    old.cluster.apply(*_PODS.values())
    wait_for_pods(old.cluster, "default", *_PODS)
    for name in _PODS:
        old.assert_has_what_it_asks(old.cluster.get("pod", name, _SCOPE))
    for node in old.machines:
        flags = (
            "--ignore-daemonsets",
            "--force",
            "--delete-emptydir-data",
            f"--timeout={PATIENCE:g}s",
        )
        old.cluster.kubectl("drain", node, *flags)
    old.wait_for_rest()
    journals = journals_of(old)

    after = _NEXT.get(old.cluster.settings.kubernetes, DEFAULT_KUBERNETES)
    driver = Installation(upgraded(old.cluster, after, cluster_report))
    for node in driver.machines:
        driver.cluster.kubectl("uncordon", node)
    driver.install(report=cluster_report)
    driver.cluster.apply(*_PODS.values())
    wait_for_pods(driver.cluster, "default", *_PODS)
    for name, manifest in _PODS.items():
        pod = driver.cluster.get("pod", name, _SCOPE)
        assert_has(driver, pod, limits_of(manifest["spec"]), claimed(driver, pod))
    assert journals_of(driver) == journals


def journals_of(driver: Installation) -> dict[str, tuple[int, list[str]]]:
    """By node, the file that is locked for the journal, which alone is never replaced, and the
    journal's files: one that could not be read would be kept beside the new one."""
    folders = {node.name: node.host_path(_FOLDER) for node in driver.cluster.nodes}
    return {
        node: (
            (folder / "journal.lock").stat().st_ino,
            sorted(each.name for each in folder.glob("journal*")),
        )
        for node, folder in folders.items()
    }
