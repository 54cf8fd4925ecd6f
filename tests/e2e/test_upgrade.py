"""`helm upgrade` under running pods, forwards and back, and a kill in the midst of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from dra_driver.model.mode import Mode
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.events import notes
from tests.e2e.installation import LOOKS, Installation
from tests.e2e.one_card import OneCard
from tests.e2e.test_health import WELL, Pod
from tests.e2e.witness import watching

pytestmark = [pytest.mark.cluster, pytest.mark.matrix, pytest.mark.usefixtures("restored")]

_SYSTEM = f"--namespace={DRIVER_NAMESPACE}"
# Other pods for all agents, which do the same.
_OTHER = {"agent": {**LOOKS, "reconcileInterval": 31}}


def test_pods_come_and_go_while_all_agents_are_replaced(
    driver: Installation, one: OneCard, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one.run("held-drs", Mode.DRS, 3)
    whole = Pod(driver, namespace, "held-whole")
    whole.wait_for_health(dict.fromkeys(whole.cards, WELL))
    before = {node: driver.agent_pod(node) for node in driver.machines}
    instances = one.machine.instances(one.card)
    with watching(driver, namespace, ["held-whole"]) as seen:
        driver.install(driver.values(**_OTHER))
    with capsys.disabled():
        print(f"\n  {seen}")
    assert seen.gaps == []
    assert notes(driver, namespace, "Pod", "FailedPrepareDynamicResources") == []
    assert all(len(starts) >= 2 for starts in seen.starts.values())
    assert max(seen.unknown.values()) < 10.0
    after = {node: driver.agent_pod(node) for node in driver.machines}
    assert not set(before.values()) & set(after.values())
    one.wait_for("held-drs", "held-whole")
    assert one.machine.instances(one.card) == instances
    replaced_back_with_a_kill_in_its_midst(driver, one)
    one.run("after", Mode.DRS, 1)
    one.wait_for("held-drs", "held-whole")
    assert one.machine.instances(one.card)[: len(instances)] == instances


def replaced_back_with_a_kill_in_its_midst(driver: Installation, one: OneCard) -> None:
    """Of two agents of a node the newer one is killed."""
    node = one.node.name
    older = driver.agent_pod(node)
    with ThreadPoolExecutor(1) as background:
        upgrade = background.submit(driver.install)
        wait_until(
            lambda: len(running_agents(driver, node)) == 2,
            PATIENCE,
            f"two running agents on {node}",
            seen=lambda: str(running_agents(driver, node)),
        )
        [newer] = set(running_agents(driver, node)) - {older}
        one.node.ctr("tasks", "kill", "--signal=SIGKILL", running_agents(driver, node)[newer])
        upgrade.result(2 * PATIENCE)


def running_agents(driver: Installation, node: str) -> dict[str, str]:
    """The names of the node's agents that do not end, with their containers' identities."""
    found = {}
    for name in driver.agent_pods(node):
        pod = driver.cluster.get("pod", name, _SYSTEM)
        for container in pod["status"].get("containerStatuses", ()):
            if "running" in container["state"]:
                found[name] = container["containerID"].removeprefix("containerd://")
    return found
