"""A cluster is upgraded under pods that hold GCUs in all three modes: ``make test-upgrade``.

The control plane goes first, and of that one of two API servers, beside a kube-scheduler of the
version before. One node follows from version to version; the other one keeps its old kubelet until
the control plane is the newest: three minor versions, the most that Kubernetes supports.
$GCU_DRA_UPGRADE names the versions, or is ``all``; by default they are the oldest, played by the
newest, and the newest itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import ALLOCATOR_SCHEDULER
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.upgrades import upgrade_node, with_control_plane, with_newer_api_server
from tests.cluster.versions import DEFAULT_KUBERNETES, REAL, RELEASES, WITHOUT_TAINTS
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.installation import Installation
from tests.e2e.manifests import pod_with, portable_claim_in
from tests.e2e.seen import assert_sees_what_was_granted, cards

pytestmark = [pytest.mark.cluster, pytest.mark.matrix, pytest.mark.timeout(3600)]

_CHOSEN = os.environ.get("GCU_DRA_UPGRADE") or f"{WITHOUT_TAINTS},{DEFAULT_KUBERNETES}"
_WITH_CLAIMS = [version for version in REAL if RELEASES[version].dra]
VERSIONS = tuple(_WITH_CLAIMS if _CHOSEN == "all" else _CHOSEN.split(","))
_NAMESPACE = "held"
_SCOPE = f"--namespace={_NAMESPACE}"
_HELD = {"slices": (Mode.SHARED, 2), "instance": (Mode.DRS, 3), "whole": (Mode.WHOLE, None)}

Object = dict[str, Any]


class Upgrade:
    """Pods that hold GCUs on each node of a cluster that changes its version."""

    def __init__(self, cluster: Cluster, report: Callable[[str], None]) -> None:
        self.cluster = cluster
        self._report = report
        self._before: dict[str, tuple[object, ...]] = {}
        self._scheduler = cluster.release

    @property
    def driver(self) -> Installation:
        return Installation(self.cluster)

    def hold(self) -> None:
        """Start a pod in each mode on each node."""
        self.cluster.kubectl("create", "namespace", _NAMESPACE)
        for node in self.cluster.nodes:
            for kind, (mode, amount) in _HELD.items():
                self._start(f"{kind}-{node.number}", node, mode, amount)
        names = [f"{kind}-{node.number}" for node in self.cluster.nodes for kind in _HELD]
        wait_for_pods(self.cluster, _NAMESPACE, *names)
        self._before = {name: self._seen(name) for name in names}

    def api_server(self, version: str) -> None:
        """One of them: another one goes on, and with it kube-scheduler of the version before."""
        self.cluster = with_newer_api_server(self.cluster, version, self._report)
        self.cluster.wait_ready()

    def control_plane(self, version: str) -> None:
        """All of it; the nodes go on with their kubelets. `helm upgrade` then chooses anew how
        slices are published, as the page about upgrades says."""
        self.cluster = with_control_plane(self.cluster, version, self._report)
        self._scheduler = self.cluster.release
        self.cluster.wait_ready()
        self.driver.install(report=self._report)

    def node(self, node: Node) -> None:
        upgrade_node(self.cluster, self.cluster.node(node.name))
        version = f"v{self.cluster.release.version}"

        def is_upgraded() -> bool:
            status = self.cluster.get("node", node.name)["status"]
            ready = {"type": "Ready", "status": "True"}
            return status["nodeInfo"]["kubeletVersion"] == version and any(
                ready.items() <= each.items() for each in status["conditions"]
            )

        wait_until(is_upgraded, PATIENCE, f"{node.name} at {version}")
        self._report(f"{node.name} has a kubelet {version}")

    def check(self) -> None:
        """All pods run on with what they had, and on each node new ones get what is left: slices
        beside those that are held, a claim that is held already, and nothing else of its card. Once
        kube-scheduler allocates, a card in use takes nothing new: where the old server dropped the
        amount of a share, kube-scheduler counts the whole card as taken."""
        wait_for_pods(self.cluster, _NAMESPACE, *self._before)
        assert {name: self._seen(name) for name in self._before} == self._before
        changes = self.driver.allocator() == ALLOCATOR_SCHEDULER  # they began with the controller
        for node in self.cluster.nodes:
            self._start("more", node, Mode.SHARED, 4)
            wait_for_pods(self.cluster, _NAMESPACE, "more")
            shares = self._cards("more") == self._cards(f"slices-{node.number}")
            assert shares != changes
            self._join(node)
            self.cluster.kubectl("delete", "pod", "more", "joined", _SCOPE)
            self.cluster.kubectl("delete", "resourceclaim", "more", _SCOPE)

    def end(self) -> None:
        """End all pods; returns when the nodes have nothing prepared, and no instances."""
        self.cluster.kubectl("delete", "pod", "--all", _SCOPE)
        self.driver.wait_for_rest()

    def _join(self, node: Node) -> None:
        """One more pod uses a claim that is held. kube-scheduler from 1.36 on cannot reserve a
        claim of before for it."""
        name = f"slices-{node.number}"
        self.cluster.apply(pod_with(name, _NAMESPACE, name="joined", **_on(node)))
        held = self.cluster.get("resourceclaim", name, _SCOPE)["status"]["allocation"]
        if "allocationTimestamp" in held or self._scheduler.drops_taints:
            wait_for_pods(self.cluster, _NAMESPACE, "joined")
            assert self._cards("joined") == self._cards(name)
        else:
            wait_until(self._is_too_old, PATIENCE, "an event that says why it waits")

    def _is_too_old(self) -> bool:
        events = self.cluster.get("events", _SCOPE, "--field-selector=reason=GcuClaimTooOld")
        return any(each["involvedObject"]["name"] == "joined" for each in events["items"])

    def _start(self, name: str, node: Node, mode: Mode, amount: int | None) -> None:
        wanted = portable_claim_in(mode, name, _NAMESPACE, amount)
        self.cluster.apply(wanted, pod_with(name, _NAMESPACE, **_on(node)))

    def _cards(self, name: str) -> frozenset[Any]:
        pod = self.cluster.get("pod", name, _SCOPE)
        assert_sees_what_was_granted(self.driver, pod)
        return cards(self.driver, pod)

    def _seen(self, name: str) -> tuple[object, ...]:
        """The cards that the pod has, and its container: another one would have been restarted."""
        [container] = self.cluster.get("pod", name, _SCOPE)["status"]["containerStatuses"]
        return self._cards(name), container["containerID"], container["restartCount"]


def _on(node: Node) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": node.name}}


@pytest.fixture
def upgrade(cluster_report: Callable[[str], None], driver_image: Path) -> Iterator[Upgrade]:
    settings = Settings(f"held-{os.getpid()}", kubernetes=VERSIONS[0], nodes=2)
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    try:
        cluster.load_image(driver_image)
        found = Upgrade(cluster, cluster_report)
        found.driver.install()
        yield found
    finally:
        cluster.down()


def test_pods_keep_what_they_hold(upgrade: Upgrade) -> None:
    upgrade.hold()
    upgrade.check()
    following, last = upgrade.cluster.nodes
    for version in VERSIONS[1:]:
        upgrade.api_server(version)
        upgrade.check()
        upgrade.control_plane(version)
        upgrade.check()
        upgrade.node(following)
        upgrade.check()
    upgrade.node(last)
    upgrade.check()
    upgrade.end()
