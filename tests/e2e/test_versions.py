"""One passage of what users do: one test with steps in their order, on two nodes of the chosen
version (``K8S``). ``make test`` plays it on the newest one, ``make test-matrix`` on each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER, VENDOR_PREFIX
from kubectl_gcu.checks.versions import UNTESTED_SERVER
from kubectl_gcu.main import WAITS, WRONG
from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.versions import RELEASES, chosen_kubernetes
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.by_limits import SHARED, assert_has, claimed, limits_of
from tests.e2e.installation import RELEASE
from tests.e2e.kubectl_gcu import holders, kubectl_gcu
from tests.e2e.manifests import pod_with
from tests.e2e.passage import NAMESPACE, SCOPE, SYSTEM, ByClaims, ByLimits, Passage, Workloads
from tests.e2e.without_dra import asking

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]

_CARDS = 4  # of the second node, on which all pods run


@pytest.fixture
def passage(request: pytest.FixtureRequest) -> Iterator[Passage]:
    """On the shared cluster of that version."""
    workloads: Workloads
    if RELEASES[chosen_kubernetes()].dra:
        workloads = ByClaims(request.getfixturevalue("installed"))
    else:
        workloads = ByLimits(request.getfixturevalue("without_dra"))
    driver = workloads.driver
    driver.wait_for_rest()
    driver.cluster.kubectl("create", "namespace", NAMESPACE)
    try:
        yield Passage(workloads)
    finally:
        driver.restore()
        driver.cluster.kubectl("delete", "namespace", NAMESPACE)


def test_what_users_do(passage: Passage, tmp_path: Path) -> None:
    helm_test_says_what_a_pod_got(passage)
    slices_are_packed_and_modes_exclude_each_other(passage)
    the_runtime_allows_the_devices_of_the_card_and_no_other(passage)
    kubectl_gcu_shows_who_holds_which_card(passage)
    a_pod_gets_the_card_that_kubectl_gcu_planned(passage, tmp_path)
    a_part_of_a_card_by_memory_and_compute(passage)
    agents_and_controllers_are_killed_under_running_pods(passage)
    two_pods_share_a_claim(passage)
    the_vendors_limits_become_a_claim(passage)
    an_uninstall_waits_for_the_last_pod_and_leaves_nothing_in_use(passage)


def helm_test_says_what_a_pod_got(passage: Passage) -> None:
    output = passage.cluster.helm("test", RELEASE, SYSTEM, both=True)
    assert re.search(r"got ENFLAME_VISIBLE_DEVICES=\d+ and /dev/gcu\d+", output), output
    passage.driver.wait_for_rest()
    pods = passage.cluster.get("pods", SYSTEM)["items"]
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
    [container] = passage.cluster.get("pod", "whole-2", SCOPE)["status"]["containerStatuses"]
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
    explained = kubectl_gcu(passage.cluster, WAITS, "explain", "pod", name, SCOPE)
    if not passage.cluster.release.dra:
        assert "next:   kube-scheduler, which asks the driver's scheduler extender" in explained
        return
    assert "next:   the allocator" in explained
    assert "fits when any one of these claims ends: passage/" in explained
    assert "held as a whole" in explained


def doctor_finds_nothing(cluster: Cluster) -> bool:
    """But for a version before a final one, that it is newer than those of the README."""
    if cluster.release.is_final:
        return bool(kubectl_gcu(cluster, 0, "doctor"))
    found = json.loads(kubectl_gcu(cluster, WRONG, "doctor", "-o=json"))
    assert [each["check"] for each in found] == [UNTESTED_SERVER.name]
    return True


def kubectl_gcu_shows_who_holds_which_card(passage: Passage) -> None:
    """In the controller's pod, too. Agents report a moment after a pod has begun to run."""
    names = ("first", "second", "third", "instance", "whole-2")
    has = {name: passage.wait_for(name) for name in names}
    in_pod = ("deployment/gcu-dra-driver-controller", "--", "kubectl-gcu", "inspect")

    def is_shown() -> bool:
        found = json.loads(kubectl_gcu(passage.cluster, 0, "inspect", "-o=json"))
        again = json.loads(passage.cluster.kubectl("exec", SYSTEM, *in_pod, "-o=json"))
        return bool(again == found and holders(found, NAMESPACE) == has)

    wait_until(is_shown, PATIENCE, "all holders shown", retry_on=(AssertionError, CommandError))
    well = partial(doctor_finds_nothing, passage.cluster)
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


def a_part_of_a_card_by_memory_and_compute(passage: Passage) -> None:
    if not passage.cluster.release.dra:
        return
    shared, instance = passage.wait_for("third"), passage.wait_for("instance")
    slices = passage.measured("soft", memory="7Gi", cores=20, isolation="best-effort")
    assert slices == (shared, {"slices": "2"})
    assert passage.measured("hard", memory="6Gi", isolation="fixed-share") == (
        instance,
        {"size": "1"},
    )
    passage.end("soft", "hard")


def agents_and_controllers_are_killed_under_running_pods(passage: Passage) -> None:
    before = {name: passage.wait_for(name) for name in ("first", "instance", "whole-2")}
    passage.kill("agent")
    passage.kill("controller")
    passage.driver.wait_for_agents()
    passage.wait_for_controllers()
    assert {name: passage.wait_for(name) for name in before} == before
    [instance] = before["instance"]
    assert passage.run("small", Mode.DRS, 1) == [instance]
    machine = passage.driver.machine(passage.cluster.nodes[1].name)
    assert len({each.uuid for each in machine.instances()}) == 2


def two_pods_share_a_claim(passage: Passage) -> None:
    if not passage.cluster.release.dra:
        return  # limits are a container's own
    cards = passage.wait_for("first")
    other = pod_with("first", NAMESPACE, name="beside")
    passage.cluster.apply(other)
    assert passage.wait_for("beside") == cards
    passage.cluster.kubectl("delete", "pod", "beside", SCOPE)


def the_vendors_limits_become_a_claim(passage: Passage) -> None:
    if not passage.cluster.release.dra:
        return
    pod = asking("limits", NAMESPACE, {SHARED: 2})
    passage.cluster.apply(pod)
    wait_for_pods(passage.cluster, NAMESPACE, "limits")
    made = passage.cluster.get("pod", "limits", SCOPE)
    assert_has(passage.driver, made, limits_of(pod["spec"]), claimed(passage.driver, made))
    passage.cluster.kubectl("delete", "pod", "limits", SCOPE)


def written_on_nodes(passage: Passage) -> set[str]:
    """The labels and annotations of agents that Nodes have."""
    return {
        key
        for node in passage.cluster.get("nodes")["items"]
        for kind in ("labels", "annotations")
        for key in node["metadata"].get(kind, ())
        if VENDOR_PREFIX in key
    }


def an_uninstall_waits_for_the_last_pod_and_leaves_nothing_in_use(passage: Passage) -> None:
    with pytest.raises(CommandError, match=r"have GCUs|use GCUs"):
        passage.driver.uninstall()
    passage.end("first", "second", "third", "instance", "small", "whole-2")
    passage.driver.wait_for_rest()
    assert {f"{DRIVER}/count", f"{DRIVER}/model.S60"} <= written_on_nodes(passage)
    passage.driver.uninstall()
    assert written_on_nodes(passage) == set()
    if passage.cluster.release.dra:
        wait_until(lambda: not passage.driver.slices(), PATIENCE, "no ResourceSlices")
