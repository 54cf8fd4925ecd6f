"""Installing and removing the chart on a cluster of its own, which serves the older APIs too."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from dra_driver.model.names import CLASS_WHOLE, TAINT_ALLOCATED_BY
from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.control_plane.driver import Driver
from tests.control_plane.objects import everything

pytestmark = pytest.mark.control_plane

OLDER = ("v1beta1", "v1beta2")


@pytest.fixture(scope="module")
def fresh(cluster_report: Callable[[str], None]) -> Iterator[Cluster]:
    """A control plane on which nothing was installed."""
    served = ",".join(f"resource.k8s.io/{version}=true" for version in OLDER)
    settings = Settings(
        f"install-{os.getpid()}",
        extra_flags={"kube-apiserver": (f"--runtime-config={served}",)},
    )
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    yield cluster
    cluster.down()


def request(version: str, tolerations: list[dict[str, str]]) -> dict[str, object]:
    """A request in the shape of that version: v1beta1 knows no `exactly`."""
    wanted = {"deviceClassName": CLASS_WHOLE, "tolerations": tolerations}
    return {"name": "gcu", **wanted} if version == "v1beta1" else {"name": "gcu", "exactly": wanted}


def test_uninstall_leaves_nothing(fresh: Cluster, tmp_path: Path) -> None:
    fresh.kubectl("create", "namespace", DRIVER_NAMESPACE)
    before = everything(fresh)
    driver = Driver.install(fresh)
    installed = everything(fresh) - before
    assert f"DeviceClass//{CLASS_WHOLE}" in installed
    assert f"DaemonSet/{DRIVER_NAMESPACE}/gcu-dra-driver-agent" in installed
    driver.uninstall()
    left = everything(fresh) - before
    assert {each for each in left if not each.startswith(("Pod/", "ReplicaSet/"))} == set()


def test_the_policy_holds_for_older_apis(fresh: Cluster) -> None:
    driver = Driver.install(fresh)

    def create(kind: str, version: str, *tolerations: dict[str, str]) -> str:
        spec = {"devices": {"requests": [request(version, list(tolerations))]}}
        body = {
            "apiVersion": f"resource.k8s.io/{version}",
            "kind": kind,
            "metadata": {"name": "tried", "namespace": "default"},
            "spec": spec if kind == "ResourceClaim" else {"spec": spec},
        }
        return fresh.kubectl(
            "create", "--dry-run=server", "--filename=-", "--output=json", stdin=json.dumps(body)
        )

    try:
        for kind, version in product(("ResourceClaim", "ResourceClaimTemplate"), OLDER):
            with pytest.raises(CommandError, match="request gcu: a request for a GCU must not"):
                create(kind, version, {"key": TAINT_ALLOCATED_BY, "operator": "Exists"})
            made = json.loads(create(kind, version))
            assert (made["kind"], made["apiVersion"]) == (kind, f"resource.k8s.io/{version}")
    finally:
        driver.uninstall()


def test_a_second_release_is_refused(fresh: Cluster, tmp_path: Path) -> None:
    driver = Driver.install(fresh)
    try:
        with pytest.raises(CommandError, match="cannot be imported into the current release"):
            Driver.install(fresh, release="second")
    finally:
        driver.uninstall()
