"""With ``allocator: scheduler`` the controller's account can allocate nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dra_driver.kube.client import Client
from tests.cluster.cluster import Cluster
from tests.control_plane.driver import Driver
from tests.control_plane.test_rights import Access, allowed

pytestmark = pytest.mark.control_plane

CLAIMS = "resource.k8s.io/resourceclaims"
VOLUMES = Access("get", "/persistentvolumeclaims", "default")


@pytest.fixture(params=[True, False], ids=["names nodes", "without names"])
def nominates(
    driver: Driver, control_plane: Cluster, request: pytest.FixtureRequest
) -> Iterator[bool]:
    """The chart's rights where kube-scheduler allocates."""
    version = control_plane.release.version
    names = {"enabled": request.param}
    with driver.changed(allocator="scheduler", schedulerVersion=version, nomination=names):
        yield request.param


def test_it_writes_no_status_of_claims(api: Client, driver: Driver, nominates: bool) -> None:
    user = driver.user("controller")
    for subresource in ("status", "binding"):
        assert allowed(api, user, Access("update", f"{CLAIMS}/{subresource}", "default")) == []
    assert allowed(api, user, Access("update", CLAIMS, "default"))  # the term of a new leader
    assert bool(allowed(api, user, VOLUMES)) is nominates
    assert bool(allowed(api, user, Access("patch", "/pods/status", "default"))) is nominates
