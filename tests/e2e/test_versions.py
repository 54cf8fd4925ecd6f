"""One passage of what users do, on a Kubernetes of each version: ``make test-matrix``.

Two nodes; one test with steps in their order. $GCU_DRA_MATRIX names the versions, or is ``all``. By
default it is the newest one alone, as other tests use 1.36.3, 1.34.4 and 1.30.14.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from dra_driver.model.claims.claim import results
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from kubectl_gcu.main import WAITS
from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import NEXT_KUBERNETES, RELEASES
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.by_limits import SHARED, assert_has, claimed, limits_of
from tests.e2e.installation import RELEASE, Installation
from tests.e2e.kubectl_gcu import holders, kubectl_gcu
from tests.e2e.manifests import claim_in, pod_with
from tests.e2e.seen import assert_sees_what_was_granted
from tests.e2e.without_dra import OldInstallation, asking

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]

_CHOSEN = os.environ.get("GCU_DRA_MATRIX") or NEXT_KUBERNETES
VERSIONS = tuple(sorted(RELEASES)) if _CHOSEN == "all" else tuple(_CHOSEN.split(","))
_NAMESPACE = "passage"
_SCOPE = f"--namespace={_NAMESPACE}"
_SYSTEM = f"--namespace={DRIVER_NAMESPACE}"
_CARDS = 4  # of the second node, on which all pods run

Object = dict[str, Any]


class Workloads(Protocol):
    """How users of a cluster ask for GCUs."""

    @property
    def driver(self) -> Installation: ...

    def make(self, name: str, mode: Mode, amount: int | None) -> list[Object]:
        """A pod of that name, and what it needs."""

    def cards(self, pod: Object) -> list[str]:
        """PCI addresses of what the running pod has. Raises AssertionError if it sees others."""


class ByClaims:
    """ResourceClaims."""

    def __init__(self, driver: Installation) -> None:
        self.driver = driver

    def make(self, name: str, mode: Mode, amount: int | None) -> list[Object]:
        wanted = claim_in(mode, name, _NAMESPACE, amount)
        return [wanted, pod_with(name, _NAMESPACE, nodeSelector=_second_node(self.driver))]

    def cards(self, pod: Object) -> list[str]:
        assert_sees_what_was_granted(self.driver, pod)
        cluster = self.driver.cluster
        [used] = pod["spec"]["resourceClaims"]
        found = results(cluster.get("resourceclaim", used["resourceClaimName"], _SCOPE))
        return [str(parse_device_name(each.device)[1]) for each in found]


class ByLimits:
    """The vendor's limits, through the device plugin."""

    def __init__(self, driver: OldInstallation) -> None:
        self.driver = driver
        self._old = driver

    def make(self, name: str, mode: Mode, amount: int | None) -> list[Object]:
        limits = {RESOURCES[mode]: amount or 1}
        return [asking(name, _NAMESPACE, limits, nodeSelector=_second_node(self.driver))]

    def cards(self, pod: Object) -> list[str]:
        self._old.assert_has_what_it_asks(pod)
        return [card for held in self._old.told(pod).values() for card, _ in held]


def _second_node(driver: Installation) -> dict[str, str]:
    return {"kubernetes.io/hostname": driver.cluster.nodes[1].name}


class Passage:
    """Pods in a namespace of their own."""

    def __init__(self, workloads: Workloads) -> None:
        self.workloads = workloads
        self.driver = workloads.driver
        self.cluster = workloads.driver.cluster

    def start(self, name: str, mode: Mode, amount: int | None = None) -> None:
        self.cluster.apply(*self.workloads.make(name, mode, amount))

    def run(self, name: str, mode: Mode, amount: int | None = None) -> list[str]:
        """Start a pod; returns the cards that it has."""
        self.start(name, mode, amount)
        return self.wait_for(name)

    def wait_for(self, name: str) -> list[str]:
        wait_for_pods(self.cluster, _NAMESPACE, name)
        return self.workloads.cards(self.cluster.get("pod", name, _SCOPE))

    def waits(self, *names: str) -> None:
        """Return when each pod has an event that says why it waits; none is bound."""
        for name in names:
            wait_until(lambda: self._reasons(name), PATIENCE, f"a reason why {name} waits")  # noqa: B023
            assert "nodeName" not in self.cluster.get("pod", name, _SCOPE)["spec"]

    def end(self, *names: str) -> None:
        self.cluster.kubectl("delete", "pod", *names, _SCOPE)
        if self.cluster.release.dra:
            self.cluster.kubectl("delete", "resourceclaim", *names, _SCOPE, "--ignore-not-found")

    def kill(self, component: str) -> None:
        """All pods of agent or controller, at once."""
        selector = f"--selector=app.kubernetes.io/component={component}"
        self.cluster.kubectl("delete", "pods", selector, _SYSTEM, "--grace-period=0", "--force")

    def _reasons(self, name: str) -> list[str]:
        events = self.cluster.get("events", _SCOPE)["items"]
        return [
            each["message"]
            for each in events
            if each["involvedObject"]["name"] == name
            and each["reason"] in {"GcuAllocationFailed", "FailedScheduling"}
        ]


@pytest.fixture(params=VERSIONS)
def passage(
    request: pytest.FixtureRequest, cluster_report: Callable[[str], None], driver_image: Path
) -> Iterator[Passage]:
    version = request.param
    settings = Settings(f"matrix-{os.getpid()}", kubernetes=version, nodes=2)
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    try:
        cluster.load_image(driver_image)
        workloads: Workloads
        if RELEASES[version].dra:
            workloads = ByClaims(Installation(cluster))
        else:
            old = OldInstallation(cluster)
            old.load_scheduler()
            workloads = ByLimits(old)
        workloads.driver.install()
        cluster.kubectl("create", "namespace", _NAMESPACE)
        yield Passage(workloads)
    finally:
        cluster.down()


def test_what_users_do(passage: Passage, tmp_path: Path) -> None:
    helm_test_says_what_a_pod_got(passage)
    slices_are_packed_and_modes_exclude_each_other(passage)
    the_runtime_allows_the_devices_of_the_card_and_no_other(passage)
    kubectl_gcu_shows_who_holds_which_card(passage)
    a_pod_gets_the_card_that_kubectl_gcu_planned(passage, tmp_path)
    agents_and_controllers_are_killed_under_running_pods(passage)
    two_pods_share_a_claim(passage)
    the_vendors_limits_become_a_claim(passage)
    an_uninstall_waits_for_the_last_pod_and_leaves_nothing_in_use(passage)


def helm_test_says_what_a_pod_got(passage: Passage) -> None:
    output = passage.cluster.helm("test", RELEASE, _SYSTEM, both=True)
    assert re.search(r"got ENFLAME_VISIBLE_DEVICES=\d+ and /dev/gcu\d+", output), output
    passage.driver.wait_for_rest()
    pods = passage.cluster.get("pods", _SYSTEM)["items"]
    assert {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in pods} == {
        "agent",
        "controller",
    }


def slices_are_packed_and_modes_exclude_each_other(passage: Passage) -> None:
    [shared] = passage.run("first", Mode.SHARED, 2)
    assert passage.run("second", Mode.SHARED, 4) == [shared]
    others = [passage.run(f"whole-{number}", Mode.WHOLE) for number in range(_CARDS - 1)]
    assert len({shared, *(card for [card] in others)}) == _CARDS
    passage.start("instance", Mode.DRS, 3)
    passage.start("third", Mode.SHARED, 1)
    passage.waits("instance", "third")
    kubectl_gcu_explains_why_a_pod_waits(passage, "instance")
    passage.end("whole-0")
    passage.end("whole-1")
    freed = {card for [card] in others[:2]}
    assert {*passage.wait_for("instance"), *passage.wait_for("third")} == freed


def the_runtime_allows_the_devices_of_the_card_and_no_other(passage: Passage) -> None:
    """By the OCI specification that containerd gives to runc, which makes rules of cgroup v1 or a
    program of cgroup v2 from it."""
    [container] = passage.cluster.get("pod", "whole-2", _SCOPE)["status"]["containerStatuses"]
    identity = container["containerID"].removeprefix("containerd://")
    info = json.loads(passage.cluster.nodes[1].ctr("containers", "info", identity))
    linux = info["Spec"]["linux"]
    rules = linux["resources"]["devices"]
    assert rules[0] == {"allow": False, "access": "rwm"}  # what is not allowed below is refused
    allowed = [
        (each["type"], each["major"], each["minor"])
        for each in rules[1:]
        if each["allow"] and "w" in each["access"]
    ]
    nodes = {
        each["path"]: (each["type"], each["major"], each["minor"]) for each in linux["devices"]
    }
    ours = {path: numbers for path, numbers in nodes.items() if path.startswith("/dev/gcu")}
    assert len([path for path in ours if path.removeprefix("/dev/gcu").isdigit()]) == 1
    assert sorted(allowed) == sorted(set(ours.values()))


def kubectl_gcu_explains_why_a_pod_waits(passage: Passage, name: str) -> None:
    explained = kubectl_gcu(passage.cluster, WAITS, "explain", "pod", name, _SCOPE)
    if not passage.cluster.release.dra:
        assert "next:   kube-scheduler, which asks the driver's scheduler extender" in explained
        return
    assert "next:   the allocator" in explained
    assert "fits when any one of these claims ends: passage/" in explained
    assert "held as a whole" in explained


def kubectl_gcu_shows_who_holds_which_card(passage: Passage) -> None:
    """In the controller's pod, too. Agents report a moment after a pod has begun to run."""
    names = ("first", "second", "third", "instance", "whole-2")
    has = {name: passage.wait_for(name) for name in names}
    in_pod = ("deployment/gcu-dra-driver-controller", "--", "kubectl-gcu", "inspect")

    def is_shown() -> bool:
        found = json.loads(kubectl_gcu(passage.cluster, 0, "inspect", "-o=json"))
        again = json.loads(passage.cluster.kubectl("exec", _SYSTEM, *in_pod, "-o=json"))
        return bool(again == found and holders(found, _NAMESPACE) == has)

    wait_until(is_shown, PATIENCE, "all holders shown", retry_on=(AssertionError, CommandError))
    well = partial(kubectl_gcu, passage.cluster, 0, "doctor")
    wait_until(well, PATIENCE, "doctor without a finding", retry_on=(AssertionError,))


def a_pod_gets_the_card_that_kubectl_gcu_planned(passage: Passage, folder: Path) -> None:
    if not passage.cluster.release.dra:
        return  # without ResourceSlices nothing can be planned
    manifest = folder / "planned.json"
    made = passage.workloads.make("planned", Mode.SHARED, 5)
    manifest.write_text("\n---\n".join(map(json.dumps, made)))
    plan = kubectl_gcu(passage.cluster, 0, "plan", f"--file={manifest}", "-o=json")
    state = folder / "state.json"
    kinds = "resourceslices,deviceclasses,nodes,pods,resourceclaims,resourceclaimtemplates"
    state.write_text(passage.cluster.kubectl("get", kinds, "-A", "-o=json"))
    saved = (f"--state={state}", "-o=json")
    assert kubectl_gcu(passage.cluster, 0, "plan", f"--file={manifest}", *saved) == plan
    [pod] = json.loads(plan)["pods"]
    [(device, _)] = pod["devices"]
    assert passage.run("planned", Mode.SHARED, 5) == [str(parse_device_name(device)[1])]
    print(kubectl_gcu(passage.cluster, 0, "plan", f"--file={manifest}"))
    passage.end("planned")


def agents_and_controllers_are_killed_under_running_pods(passage: Passage) -> None:
    before = {name: passage.wait_for(name) for name in ("first", "instance", "whole-2")}
    passage.kill("agent")
    passage.kill("controller")
    passage.driver.wait_for_agents()
    assert {name: passage.wait_for(name) for name in before} == before
    [instance] = before["instance"]
    assert passage.run("small", Mode.DRS, 1) == [instance]
    machine = passage.driver.machine(passage.cluster.nodes[1].name)
    assert len({each.uuid for each in machine.instances()}) == 2


def two_pods_share_a_claim(passage: Passage) -> None:
    if not passage.cluster.release.dra:
        return  # limits are a container's own
    cards = passage.wait_for("first")
    other = pod_with("first", _NAMESPACE, name="beside")
    passage.cluster.apply(other)
    assert passage.wait_for("beside") == cards
    passage.cluster.kubectl("delete", "pod", "beside", _SCOPE)


def the_vendors_limits_become_a_claim(passage: Passage) -> None:
    if not passage.cluster.release.dra:
        return
    pod = asking("limits", _NAMESPACE, {SHARED: 2})
    passage.cluster.apply(pod)
    wait_for_pods(passage.cluster, _NAMESPACE, "limits")
    made = passage.cluster.get("pod", "limits", _SCOPE)
    assert_has(passage.driver, made, limits_of(pod["spec"]), claimed(passage.driver, made))
    passage.cluster.kubectl("delete", "pod", "limits", _SCOPE)


def an_uninstall_waits_for_the_last_pod_and_leaves_nothing_in_use(passage: Passage) -> None:
    with pytest.raises(CommandError, match=r"have GCUs|use GCUs"):
        passage.driver.uninstall()
    passage.end("first", "second", "third", "instance", "small", "whole-2")
    passage.driver.wait_for_rest()
    passage.driver.uninstall()
    if passage.cluster.release.dra:
        wait_until(lambda: not passage.driver.slices(), PATIENCE, "no ResourceSlices")
