"""What a kubelet and people do to an agent's sockets, calls and claims under running pods."""

from __future__ import annotations

import json

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.installation import Installation
from tests.e2e.one_card import OneCard

pytestmark = pytest.mark.cluster


@pytest.mark.matrix
@pytest.mark.parametrize(
    "sockets",
    [
        pytest.param(f"plugins/{DRIVER}/dra-*.sock", id="the service's"),
        pytest.param(f"plugins_registry/{DRIVER}-*.sock", id="the registration's"),
    ],
)
def test_a_socket_that_somebody_removes_is_there_again(
    driver: Installation, one: OneCard, sockets: str
) -> None:
    one.run("before", Mode.DRS, 1)
    kubelet = one.node.host_path("/var/lib/kubelet")
    [socket] = kubelet.glob(sockets)
    socket.unlink()
    wait_until(lambda: list(kubelet.glob(sockets)), PATIENCE, f"another {socket.name}")
    driver.wait_for_agents()
    wait_until(driver.published, PATIENCE, "the cards of all nodes")
    one.run("after", Mode.DRS, 1)
    one.wait_for("before")
    one.end("before", "after")


def test_a_pod_ends_whose_claim_is_gone(driver: Installation, one: OneCard) -> None:
    """The kubelet asks to unprepare a claim that nobody can read any more."""
    one.run("one", Mode.DRS, 1)
    driver.cluster.kubectl("delete", "resourceclaim", "one", one.scope, "--wait=false")
    patch = json.dumps({"metadata": {"finalizers": None}})
    driver.cluster.kubectl("patch", "resourceclaim", "one", one.scope, "--type=merge", "-p", patch)
    assert driver.cluster.kubectl("get", "resourceclaims", one.scope, "--output=name") == ""
    assert one.profiles() == ["1g.6gb"]
    one.end("one")
    driver.wait_for_rest()


@pytest.mark.matrix
def test_a_card_that_takes_longer_than_the_kubelet_waits(
    driver: Installation, one: OneCard
) -> None:
    """The kubelet gives a prepare up after 45 s, in which three calls of efsmi end; the next one
    finds the work done."""
    one.machine.set_fault("efsmi-slow", card=one.card, seconds=15)
    try:
        one.apply("slow", Mode.DRS, 1)
        one.wait_for_words("slow", "FailedPrepareDynamicResources", "DeadlineExceeded")
        wait_until(lambda: one.profiles() == ["1g.6gb"], PATIENCE, "the instance")
    finally:
        one.machine.clear_faults()
    # The kubelet asks again within 60 to 90 s, or when the pod changes.
    driver.cluster.kubectl("annotate", "pod", "slow", "again=now", one.scope)
    one.wait_for("slow")
    assert one.changes().count("create-instance") == 1
    one.end("slow")
