"""A node with running pods reboots: cards are numbered anew, instances and CDI files are gone."""

from __future__ import annotations

import time
from functools import partial

import pytest

from dra_driver.model.mode import Mode
from tests.cluster.node import Node
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.installation import Installation
from tests.e2e.manifests import claim_in, pod_with
from tests.e2e.one_card import OneCard
from tests.e2e.seen import assert_sees_what_was_granted

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]


def power_off(node: Node) -> None:
    """Without a word to anybody; the disk stays, what is in memory goes."""
    node.stop_kubelet()
    for task in running(node):
        node.ctr("tasks", "kill", "--signal=SIGKILL", task)
    wait_until(lambda: not running(node), PATIENCE, f"no container on {node.name}")
    for file in node.host_path("/var/run/cdi").iterdir():
        file.unlink()


def running(node: Node) -> list[str]:
    lines = node.ctr("tasks", "list").splitlines()[1:]
    return [line.split()[0] for line in lines if line.split()[2] == "RUNNING"]


def test_pods_come_back_with_what_they_had(driver: Installation, one: OneCard) -> None:
    one.run("small", Mode.DRS, 1)
    one.run("large", Mode.DRS, 3)
    whole = claim_in(Mode.WHOLE, "whole", one.namespace)
    selector = {"kubernetes.io/hostname": one.node.name}
    driver.cluster.apply(whole, pod_with("whole", one.namespace, nodeSelector=selector))
    one.wait_for("whole")
    minors = {card.bdf: card.minor for card in one.machine.state().cards}
    old = set(one.machine.instances(one.card))

    try:
        power_off(one.node)
        one.machine.reboot(sorted(minors, key=minors.__getitem__, reverse=True))
        assert one.profiles() == []
        assert {card.bdf: card.minor for card in one.machine.state().cards} != minors
    finally:
        one.node.start_kubelet()
    driver.cluster.wait_ready()
    driver.wait_for_agents()
    for pod in ("whole", "small", "large"):
        wait_until(partial(restarted, one, pod), PATIENCE, f"{pod}, running once more", interval=5)
        assert_sees_what_was_granted(driver, driver.cluster.get("pod", pod, one.scope))
    assert one.profiles() == ["1g.6gb", "3g.20gb"]
    assert not old & set(one.machine.instances(one.card))
    one.end("whole", "small", "large")


def restarted(one: OneCard, pod: str) -> bool:
    """Whether it runs once more. A kubelet that tries a pod before the agent is there tries it
    again after 60 to 90 s, or when the pod changes; so it changes."""
    one.cluster.kubectl("annotate", "--overwrite", "pod", pod, f"again={time.time()}", one.scope)
    [container] = one.cluster.get("pod", pod, one.scope)["status"]["containerStatuses"]
    return bool(container["ready"] and container["restartCount"])
