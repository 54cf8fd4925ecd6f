"""What `allocator: auto` chooses by the images of kube-scheduler's pods, and what helm says when an
upgrade would change the allocator."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from dra_driver.model.names import ANNOTATION_SCHEDULER_VERSION
from tests.chart.helm import CHART, RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.workloads import pod
from tests.control_plane.driver import Driver

pytestmark = [pytest.mark.control_plane, pytest.mark.kubernetes(least="1.37")]

_CHANGES = "with this upgrade another program allocates the GCUs: scheduler instead of controller"
_IMAGE = "registry.k8s.io/kube-scheduler"


@pytest.fixture
def schedulers(control_plane: Cluster) -> Iterator[Callable[..., None]]:
    """Makes pods of these images, as those of a control plane are labelled."""

    def make(*images: str) -> None:
        for number, image in enumerate(images):
            made = pod(f"kube-scheduler-{number}", "kube-system", nodeName="control-plane")
            made["metadata"]["labels"] = {"component": "kube-scheduler"}
            made["spec"]["containers"][0]["image"] = image
            control_plane.apply(made)

    yield make
    scope = ("--namespace=kube-system", "--selector=component=kube-scheduler")
    control_plane.kubectl("delete", "pods", *scope, "--force", "--grace-period=0")


def upgraded(cluster: Cluster, driver: Driver, **values: object) -> str:
    """What `helm upgrade` would render and say."""
    given = {**driver.values, **values}
    flags = (f"--namespace={DRIVER_NAMESPACE}", "--dry-run=server", "--hide-secret", "--values=-")
    return cluster.helm("upgrade", RELEASE, str(CHART), *flags, stdin=json.dumps(given))


def allocators(said: str) -> set[str]:
    """Those of the programs' environment."""
    return set(re.findall(r'name: GCU_ALLOCATOR, value: "?(\w+)', said))


@pytest.mark.parametrize(
    ("images", "chosen"),
    [
        ((f"{_IMAGE}:v1.37.1", f"{_IMAGE}:v1.37.2@sha256:{'0' * 64}"), "scheduler"),
        *(
            pytest.param(images, "controller", marks=pytest.mark.matrix)
            for images in (
                (f"{_IMAGE}:v1.37.2", f"{_IMAGE}:v1.36.3"),
                (f"{_IMAGE}:v1.37.2", f"{_IMAGE}@sha256:{'0' * 64}"),
                ("registry.k8s.io/my-kube-scheduler:v1.37.2",),
                (),
            )
        ),
    ],
    ids=["new ones", "an old one", "a digest alone", "somebody's own", "none"],
)
def test_the_images_of_kube_scheduler(
    control_plane: Cluster,
    driver: Driver,
    schedulers: Callable[..., None],
    images: tuple[str, ...],
    chosen: str,
) -> None:
    schedulers(*images)
    said = upgraded(control_plane, driver, allocator="auto")
    assert allocators(said) == {chosen}
    assert (_CHANGES in said) == (chosen == "scheduler")
    assert (f'{ANNOTATION_SCHEDULER_VERSION}: "1.37.1"' in said) == (chosen == "scheduler")


@pytest.mark.matrix
def test_a_version_by_hand_counts_more(
    control_plane: Cluster, driver: Driver, schedulers: Callable[..., None]
) -> None:
    schedulers(f"{_IMAGE}:v1.36.3")
    said = upgraded(control_plane, driver, allocator="auto", schedulerVersion="1.37.2")
    assert allocators(said) == {"scheduler"}


@pytest.mark.matrix
def test_an_upgrade_that_changes_nothing_warns_of_nothing(
    control_plane: Cluster, driver: Driver
) -> None:
    assert "another program allocates" not in upgraded(control_plane, driver)


@pytest.mark.matrix
def test_the_way_back(
    control_plane: Cluster, driver: Driver, schedulers: Callable[..., None]
) -> None:
    schedulers(f"{_IMAGE}:v1.36.3")
    with driver.changed(allocator="scheduler", schedulerVersion="1.37.2"):
        said = upgraded(control_plane, driver, allocator="auto")
    assert "another program allocates the GCUs: controller instead of scheduler" in said
    assert "kubectl gcu doctor --allocator controller" in said
