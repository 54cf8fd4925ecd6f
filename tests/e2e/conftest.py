"""Fixtures of the tests that use the driver as a user does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.e2e.installation import Installation
from tests.e2e.one_card import OneCard
from tests.e2e.without_dra import OldInstallation


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Installation:
    """The driver, installed once for the test run."""
    installation = Installation(cluster)
    installation.install()
    installation.told_at_first = cluster.get("events", f"--namespace={DRIVER_NAMESPACE}")["items"]
    return installation


@pytest.fixture
def driver(installed: Installation) -> Iterator[Installation]:
    """The installed driver; afterwards no node has a prepared claim left."""
    yield installed
    installed.wait_for_rest()


@pytest.fixture
def restored(driver: Installation, namespace: str) -> Iterator[None]:
    """Whatever a test does to the release, it is there again, and before the test's pods end: they
    would wait for it."""
    yield
    driver.restore()


@pytest.fixture
def one(driver: Installation, namespace: str) -> OneCard:
    """The first card of the first node, for claims in the test's namespace."""
    return OneCard(driver, namespace)


@pytest.fixture(scope="session")
def without_dra(old_cluster: Cluster) -> OldInstallation:
    """The driver on the cluster without DRA, installed once for the test run."""
    installation = OldInstallation(old_cluster)
    installation.load_scheduler()
    installation.install()
    return installation
