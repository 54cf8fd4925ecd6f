"""Fixtures of the control-plane tier: our client, our controller, machines that are objects."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kube.api import Change
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import (
    EVENTS,
    PODS,
    RESOURCE_CLAIMS,
)
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.pki import Authority, Identity
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.driver import Driver
from tests.control_plane.hands import Hands
from tests.control_plane.machines import Machines

Start = Callable[..., ControllerProcess]

_READABLE = [
    f"--resource={name}"
    for name in ("pods", "resourceclaims.resource.k8s.io", "events.events.k8s.io")
]


@pytest.fixture(scope="session")
def api(control_plane: Cluster) -> Iterator[Client]:
    """Our client, as administrator."""
    client = connect(control_plane.kubeconfig, effects=Effects(), user_agent="tests/1")
    yield client
    client.close()


@pytest.fixture(scope="session")
def driver(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Driver:
    """The chart as helm installs it: accounts, rights, class and policies are the real ones."""
    return Driver.install(control_plane)


@pytest.fixture(scope="session")
def controller_kubeconfig(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the chart's service account: its rights and no others."""
    return driver.kubeconfig("controller", tmp_path_factory.mktemp("controller") / "kubeconfig")


@pytest.fixture
def start_controller(controller_kubeconfig: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts controllers, with short times; nothing is left of them afterwards."""
    started: list[ControllerProcess] = []

    def start(*flags: str, name: str = "replica-0", **kwargs: Any) -> ControllerProcess:
        log = tmp_path / f"controller-{len(started)}.log"
        short = ("--quiet-time=1", "--scheduling-patience=3", "--node-retry=5")
        of_the_pod = f"--lease-namespace={DRIVER_NAMESPACE}"
        process = ControllerProcess(
            controller_kubeconfig, log, of_the_pod, *short, *flags, name=name, **kwargs
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.end()
        print(process.log())  # shown by pytest when the test failed


@pytest.fixture
def controller(start_controller: Start) -> ControllerProcess:
    """A controller that leads."""
    process = start_controller()
    process.wait_for_log("leads")
    return process


@pytest.fixture
def machines(control_plane: Cluster, api: Client) -> Iterator[Machines]:
    found = Machines(control_plane, api)
    yield found
    found.remove_all()


class Eyes:
    """Waits for what other processes make true in the test's namespace."""

    def __init__(self, cluster: Cluster, api: Client, namespace: str) -> None:
        self._cluster = cluster
        self._api = api
        self.namespace = namespace

    def claim(self, name: str) -> Object:
        return self._api.get(RESOURCE_CLAIMS, name, namespace=self.namespace)

    def pod(self, name: str) -> Object:
        return self._api.get(PODS, name, namespace=self.namespace)

    def bound(self, name: str, timeout: float = PATIENCE) -> str:
        """The node that the pod was bound to."""
        return wait_until(
            lambda: str(self.pod(name)["spec"].get("nodeName") or ""), timeout, f"pod {name} bound"
        )

    def allocated(self, name: str, timeout: float = PATIENCE) -> Object:
        """The claim, once it is allocated."""
        wait_until(lambda: self._allocation(name), timeout, f"claim {name} allocated")
        return self.claim(name)

    def released(self, name: str, timeout: float = PATIENCE) -> Object:
        """The claim, once it is not allocated."""
        wait_until(lambda: not self._allocation(name), timeout, f"claim {name} released")
        return self.claim(name)

    def gone(self, name: str, timeout: float = PATIENCE) -> None:
        """Return when the claim no longer exists."""

        def is_gone() -> bool:
            try:
                self.claim(name)
            except NotFound:
                return True
            return False

        wait_until(is_gone, timeout, f"claim {name} gone")

    def end(self, name: str) -> None:
        """Delete the pod at once: there is no kubelet to confirm its end."""
        self._cluster.end_pod(self.namespace, name)

    def stays(self, predicate: Callable[[], bool], seconds: float, what: str) -> None:
        """Return when it has been true for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert predicate(), what
            time.sleep(0.1)

    def node_of(self, name: str) -> str:
        """The node that the claim is allocated on; empty where it is not."""
        found = results(self.claim(name))
        return found[0].pool.partition("/")[2] if found else ""

    def no_card_twice(self, names: Iterable[str]) -> None:
        """Return when all of the claims are allocated, to different cards."""
        held = [(each.pool, each.device) for name in names for each in results(self.claim(name))]
        assert len(held) == len(set(held))

    def wait_for_event(self, name: str, words: str) -> None:
        """Return when an event about the object has these words. The first event may be of a
        moment when the controller had not seen everything yet."""
        wait_until(
            lambda: any(words in each for each in events_about(self._api, self.namespace, name)),
            PATIENCE,
            f"an event about {name} with {words!r}",
            seen=lambda: str(events_about(self._api, self.namespace, name)),
        )

    def _allocation(self, name: str) -> object:
        return (self.claim(name).get("status") or {}).get("allocation")


@pytest.fixture
def eyes(api: Client, namespace: str, control_plane: Cluster) -> Eyes:
    return Eyes(control_plane, api, namespace)


@pytest.fixture
def hands(api: Client, namespace: str, control_plane: Cluster) -> Iterator[Hands]:
    found = Hands(control_plane, api, namespace)
    yield found
    found.clean()


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a test of the controller acts and looks with."""

    cluster: Cluster
    api: Client
    namespace: str
    machines: Machines
    eyes: Eyes
    hands: Hands

    def events_about(self, name: str) -> list[str]:
        return events_about(self.api, self.namespace, name)

    def wait_for_event(self, name: str, words: str) -> None:
        self.eyes.wait_for_event(name, words)

    def writes_to_claims(self, since: str) -> list[Object]:
        """Each claim of the namespace as it was after each write since a resourceVersion, up to
        what it is now."""
        now = self.api.list(RESOURCE_CLAIMS, namespace=self.namespace).items
        awaited = {_version(each) for each in now if int(_version(each)) > int(since)}
        watch = self.api.watch(
            RESOURCE_CLAIMS, resource_version=since, namespace=self.namespace, timeout=60.0
        )
        writes: list[Object] = []
        events = iter(watch)
        while awaited:
            event = next(events)
            if event.change is not Change.BOOKMARK:
                writes.append(event.object)
                awaited.discard(_version(event.object))
        watch.close()
        return writes


@pytest.fixture
def scene(
    control_plane: Cluster, api: Client, machines: Machines, eyes: Eyes, hands: Hands
) -> Scene:
    return Scene(control_plane, api, eyes.namespace, machines, eyes, hands)


@pytest.fixture
def tenant(control_plane: Cluster, scene: Scene, tmp_path: Path) -> Path:
    """The kubeconfig of a user who may read claims and pods of the test's namespace, and slices."""
    user = f"tenant-of-{scene.namespace}"
    kubectl = control_plane.kubectl
    scope = f"--namespace={scene.namespace}"
    kubectl("create", "role", "reader", scope, "--verb=get,list,watch", *_READABLE)
    kubectl("create", "rolebinding", "reader", scope, "--role=reader", f"--user={user}")
    kubectl("create", "clusterrole", user, "--verb=list,watch", "--resource=resourceslices")
    kubectl("create", "clusterrolebinding", user, f"--clusterrole={user}", f"--user={user}")
    authority, path = Authority(control_plane.directory / "pki"), tmp_path / "tenant"
    control_plane.control_plane.write_kubeconfig(authority, path, user[:40], Identity(user))
    return path


def _version(found: Object) -> str:
    return str(found["metadata"]["resourceVersion"])


def events_about(api: Client, namespace: str, name: str) -> list[str]:
    """The driver's events about the objects of that name, each in a line."""
    found = api.list(EVENTS, namespace=namespace).items
    return [
        f"{each['type']} {each['reason']} {each['regarding']['kind']}: {each.get('note', '')}"
        for each in found
        if each["regarding"]["name"] == name
        and each.get("reportingController", "").startswith("gcu.enflame.com/")
    ]
