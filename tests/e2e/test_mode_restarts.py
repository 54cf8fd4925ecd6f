"""Agents end in the middle of things, while slices and instances are held and given back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.model.mode import Mode
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.e2e.installation import Installation
from tests.e2e.one_card import OneCard

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]

_SYSTEM = f"--namespace={DRIVER_NAMESPACE}"


def delete_the_pod(driver: Installation, one: OneCard) -> None:
    """Its successor is another pod, with sockets of its own."""
    agent = driver.agent_pod(one.node.name)
    driver.cluster.kubectl("delete", "pod", agent, _SYSTEM, "--grace-period=0", "--force")


def kill_the_process(driver: Installation, one: OneCard) -> None:
    """Its successor is another container of the same pod, which finds the sockets in place."""
    pod = driver.cluster.get("pod", driver.agent_pod(one.node.name), _SYSTEM)
    [container] = pod["status"]["containerStatuses"]
    identity = container["containerID"].removeprefix("containerd://")
    one.node.ctr("tasks", "kill", "--signal=SIGKILL", identity)


@pytest.mark.parametrize(
    ("end", "mode", "amounts"),
    [
        pytest.param(delete_the_pod, Mode.SHARED, (2, 3), id="pod, shared"),
        pytest.param(kill_the_process, Mode.DRS, (1, 3), id="process, drs"),
    ],
)
def test_pods_that_end_without_an_agent_leave_nothing(
    driver: Installation,
    one: OneCard,
    end: Callable[[Installation, OneCard], None],
    mode: Mode,
    amounts: tuple[int, int],
) -> None:
    """The first pod ends while there is no agent, the second runs on and sees the same."""
    first, second = amounts
    one.run("first", mode, first)
    one.run("second", mode, second)
    kept = one.machine.instances(one.card)[1:]
    end(driver, one)
    one.end("first")
    one.run("third", mode, first)
    one.wait_for("second")
    assert set(kept) <= set(one.machine.instances(one.card))
    end(driver, one)
    one.end("second", "third")
    driver.wait_for_rest()
