"""Fixtures of the tiers that need a real Kubernetes; see docs/dev/test-cluster.md.

`control_plane`  no kubelet, up in four seconds; nodes are objects (`add_node_object`)
`cluster`        two nodes with containerd and kubelet, the driver's image loaded
`old_cluster`    the same of a Kubernetes without DRA
`namespace`      a fresh namespace in whichever of these the test uses

The first two are of the version that $GCU_DRA_KUBERNETES names (`K8S=` of the Makefile).
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.image.build import driver_archive
from tests.cluster.image.inputs import Inputs
from tests.cluster.settings import Settings
from tests.cluster.side_by_side import left_tier
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_with_dra, chosen_without_dra
from tests.cluster.waiting import PATIENCE, wait_until

DRIVER_NAMESPACE = "gcu-dra-driver"

_TIERS = ("control_plane", "cluster", "old_cluster")

_UP: dict[str, Cluster] = {}
"""This process' clusters, by the fixture that started them."""

# What holds devices, and what would make it again.
_MAKERS = (
    *(f"apis/apps/v1/{kind}" for kind in ("deployments", "daemonsets", "statefulsets")),
    "apis/apps/v1/replicasets",
    "apis/batch/v1/jobs",
)
_PODS = "api/v1/pods"
_CLAIMS = "apis/resource.k8s.io/v1/resourceclaims"


@pytest.fixture(scope="session")
def cluster_report(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Prints progress past pytest's capture: a first build is long, and silence alarms."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def report(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"  {line}", flush=True)

    return report


@pytest.fixture(scope="session")
def control_plane(cluster_report: Callable[[str], None]) -> Iterator[Cluster]:
    """A control plane for this test run; Node objects stay Ready without a kubelet."""
    settings = Settings(f"plane-{os.getpid()}", kubernetes=chosen_with_dra(), keep_nodes_ready=True)
    with _up("control_plane", settings, cluster_report) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster(cluster_report: Callable[[str], None], driver_image: Path) -> Iterator[Cluster]:
    """Two nodes for this test run, which have the driver's image."""
    settings = Settings(f"cluster-{os.getpid()}", kubernetes=chosen_with_dra(), nodes=2)
    with _up("cluster", settings, cluster_report) as cluster:
        cluster.load_image(driver_image)
        yield cluster


@pytest.fixture(scope="session")
def old_cluster(cluster_report: Callable[[str], None], driver_image: Path) -> Iterator[Cluster]:
    """The like of `cluster`, of a Kubernetes without DRA."""
    settings = Settings(f"old-{os.getpid()}", kubernetes=chosen_without_dra(), nodes=2)
    with _up("old_cluster", settings, cluster_report) as cluster:
        cluster.load_image(driver_image)
        yield cluster


@contextmanager
def _up(tier: str, settings: Settings, report: Callable[[str], None]) -> Iterator[Cluster]:
    """A cluster that ends with the test run, or when this process leaves the tier."""
    cluster = _UP[tier] = Cluster.up(settings, owner=own_process(), report=report)
    yield cluster
    cluster.down()


@pytest.hookimpl(trylast=True)  # after the test's own fixtures
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the cluster of a tier that is left: idle, it takes up to a fifth of a processor."""
    tier = left_tier(item, nextitem)
    if tier in _UP:
        _UP.pop(tier).down()


@pytest.fixture(scope="session")
def driver_image(cluster_report: Callable[[str], None]) -> Path:
    """The OCI archive of the driver's image: what $GCU_DRA_IMAGE_ARCHIVE names, else this
    checkout's, built unless it is in the cache."""
    named = os.environ.get("GCU_DRA_IMAGE_ARCHIVE")
    if not named:
        return driver_archive(Inputs(), cluster_report)
    archive = Path(named)
    if not archive.is_file():
        pytest.fail(f"GCU_DRA_IMAGE_ARCHIVE={named}: no such file; `make image` writes one")
    return archive


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """For the sockets of a kubelet, whose paths have at most 107 bytes: pytest's own folders are
    too deep for them where several workers run."""
    with tempfile.TemporaryDirectory(prefix="gcu-") as folder:
        yield Path(folder)


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; its pods and claims are gone before the next test begins."""
    cluster = _cluster_of(request)
    slug = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    with temporary_namespace(cluster, f"{slug}-{secrets.token_hex(2)}") as name:
        yield name


@contextmanager
def temporary_namespace(
    cluster: Cluster, name: str, labels: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """A namespace of that name; its pods and claims are gone afterwards."""
    metadata = {"name": name, "labels": dict(labels)}
    cluster.call("POST", "/api/v1/namespaces", {"metadata": metadata})
    try:
        yield name
    finally:
        try:
            _end_all(cluster, name)
        finally:
            # Not waited for: its controller sleeps five seconds first, and an empty one holds
            # nothing.
            cluster.call("DELETE", f"/api/v1/namespaces/{name}")


def _cluster_of(request: pytest.FixtureRequest) -> Cluster:
    for tier in _TIERS:
        if tier in request.fixturenames:
            found: Cluster = request.getfixturevalue(tier)
            return found
    pytest.fail(f"`namespace` needs a test that also uses one of {', '.join(_TIERS)}")


def _end_all(cluster: Cluster, namespace: str) -> None:
    """End what runs and what would make it again; returns when no pod and no claim is left."""

    def of(kinds: str) -> str:
        group, _, kind = kinds.rpartition("/")
        return f"/{group}/namespaces/{namespace}/{kind}"

    for kinds in _MAKERS:
        cluster.call("DELETE", of(kinds), {"propagationPolicy": "Background"})
    # Without a kubelet nobody confirms the end of a pod.
    cluster.call("DELETE", of(_PODS), {"gracePeriodSeconds": 1 if cluster.nodes else 0})
    holders = (_PODS, _CLAIMS) if cluster.release.dra else (_PODS,)

    def left() -> list[str]:
        names = [
            f"{of(kinds)}/{each['metadata']['name']}"
            for kinds in holders
            for each in cluster.call("GET", of(kinds))["items"]
        ]
        for name in names:
            if name.startswith(of(_CLAIMS)):
                _delete_claim(cluster, name)
        return names

    wait_until(lambda: not left(), PATIENCE, f"nothing in {namespace}", seen=lambda: str(left()))


def _delete_claim(cluster: Cluster, claim: str) -> None:
    """Without kubelets do what they and the claim's controller would: end its allocation. A claim
    that a pod had made is deleted already, and goes with its last finalizer."""
    with _not_found_is_well():
        cluster.call("DELETE", claim)
    if not cluster.nodes:
        with _not_found_is_well():
            cluster.call("PATCH", f"{claim}/status", {"status": None})
            cluster.call("PATCH", claim, {"metadata": {"finalizers": None}})


@contextmanager
def _not_found_is_well() -> Iterator[None]:
    """Let there be nothing of that name any more."""
    try:
        yield
    except CommandError as error:
        if "(NotFound)" not in error.output:
            raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """After a failure, add to the report what a person would look for in the cluster."""
    report = yield
    used = getattr(item, "funcargs", {})
    clusters = [used[tier] for tier in _TIERS if isinstance(used.get(tier), Cluster)]
    if report.failed and report.when != "teardown":
        namespaces = [used["namespace"]] if "namespace" in used else []
        for cluster in clusters:
            text = cluster.diagnostics(*namespaces, DRIVER_NAMESPACE)
            report.sections.append((f"cluster {cluster.name}", text))
    return report
