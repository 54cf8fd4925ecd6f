"""`helm uninstall` leaves nothing, and a later install finds a clean cluster."""

from __future__ import annotations

import pytest

from tests.cluster.waiting import wait_until
from tests.e2e.installation import Installation

pytestmark = pytest.mark.cluster

# Cluster-wide kinds in which a trace of the driver could be left.
_KINDS = (
    "deviceclasses,clusterroles,clusterrolebindings,validatingadmissionpolicies,"
    "validatingadmissionpolicybindings"
)
_WIPED_SECONDS = 90.0  # the kubelet waits 30 s for a driver to come back


def test_nothing_is_left(driver: Installation) -> None:
    driver.uninstall()
    left = driver.cluster.kubectl("get", _KINDS, "--output=name")
    assert "gcu" not in left
    wait_until(lambda: not driver.slices(), _WIPED_SECONDS, "no ResourceSlices")
    for node in driver.cluster.nodes:
        assert not driver.cdi_files(node)
        registry = node.host_path("/var/lib/kubelet/plugins_registry")
        assert not list(registry.iterdir())
    driver.install()
