"""Reads of a prepare that the API server asks to repeat, within the kubelet's deadline of 45 s."""

from __future__ import annotations

import pytest

from dra_driver.kube.errors import KubeError, TooManyRequests, Unavailable
from tests.unit.node.drs_world import DrsWorld, errors, whole
from tests.unit.node.world import Agent, claim, pod, result


def busy(seconds: float) -> KubeError:
    return TooManyRequests("later", retry_after=seconds)


def failed(seconds: float | None) -> KubeError:
    return Unavailable("not now", status=503, retry_after=seconds)


@pytest.mark.parametrize(
    "failures", [[busy(3)], [failed(1)], [busy(2), failed(4), busy(8)]], ids=["429", "503", "some"]
)
def test_a_read_is_repeated_when_the_server_says(
    world: DrsWorld, agent: Agent, failures: list[KubeError]
) -> None:
    world.api.errors = list(failures)
    assert errors(agent, world.api.add(whole("a", 0))) == [""]
    assert world.pauses == [error.retry_after for error in failures]
    assert world.api.reads == ["claim a"] * (len(failures) + 1)


def test_a_server_that_asks_for_no_pause_is_given_one(world: DrsWorld, agent: Agent) -> None:
    world.api.errors = [busy(0), busy(0)]
    assert errors(agent, world.api.add(whole("a", 0))) == [""]
    assert all(pause > 0 for pause in world.pauses)


def test_the_pods_read_is_repeated_too(world: DrsWorld, agent: Agent) -> None:
    world.api.pods["team", "pod"] = pod({"x": "a"}, ("x/left",), ("x/right",))
    world.api.errors = [None, busy(1)]
    ref = world.api.add(claim("a", result(0, "left"), result(1, "right")))
    assert errors(agent, ref) == [""]
    assert world.api.reads == ["claim a", "pod pod", "pod pod"]
    assert world.pauses == [1]


def test_the_last_error_is_told_before_the_kubelet_gives_up(world: DrsWorld, agent: Agent) -> None:
    world.api.errors = [busy(4)] * 20
    [error] = errors(agent, world.api.add(whole("a", 0)))
    assert "later" in error
    assert 15 < sum(world.pauses) < 40


@pytest.mark.parametrize("error", [busy(50), failed(None)], ids=["too late", "no answer"])
def test_other_failures_are_told_at_once(world: DrsWorld, agent: Agent, error: KubeError) -> None:
    world.api.errors = [error]
    [told] = errors(agent, world.api.add(whole("a", 0)))
    assert error.what in told
    assert world.pauses == []
