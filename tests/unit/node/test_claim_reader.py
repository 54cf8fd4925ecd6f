"""Reads of a prepare that the API server asks to repeat, within the kubelet's deadline of 45 s."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.kube.errors import KubeError, TooManyRequests, Unavailable
from dra_driver.model.errors import GcuError
from tests.unit.node.world import World, claim, pod, result


@pytest.fixture
def world(tmp_path: Any) -> World:
    return World(tmp_path)


def busy(seconds: float) -> KubeError:
    return TooManyRequests("later", retry_after=seconds)


def failed(seconds: float | None) -> KubeError:
    return Unavailable("not now", status=503, retry_after=seconds)


def prepare(world: World, *claims: dict[str, Any]) -> list[str]:
    agent = world.start()
    refs = [world.api.add(claim) for claim in claims]
    answers = agent.preparer.prepare(refs).values()
    return [str(each) if isinstance(each, GcuError) else "" for each in answers]


@pytest.mark.parametrize(
    "errors", [[busy(3)], [failed(1)], [busy(2), failed(4), busy(8)]], ids=["429", "503", "some"]
)
def test_a_read_is_repeated_when_the_server_says(world: World, errors: list[KubeError]) -> None:
    world.api.errors = list(errors)
    assert prepare(world, claim("a", result(0))) == [""]
    assert world.pauses == [error.retry_after for error in errors]
    assert world.api.reads == ["claim a"] * (len(errors) + 1)


def test_a_server_that_asks_for_no_pause_is_given_one(world: World) -> None:
    world.api.errors = [busy(0), busy(0)]
    assert prepare(world, claim("a", result(0))) == [""]
    assert all(pause > 0 for pause in world.pauses)


def test_the_pods_read_is_repeated_too(world: World) -> None:
    world.api.pods["team", "pod"] = pod({"x": "a"}, ("x/left",), ("x/right",))
    read = world.api.get_pod
    errors = [busy(1)]

    def get_pod(namespace: str, name: str) -> dict[str, Any]:
        if errors:
            raise errors.pop()
        return read(namespace, name)

    world.api.get_pod = get_pod  # type: ignore[method-assign]
    assert prepare(world, claim("a", result(0, "left"), result(1, "right"))) == [""]
    assert world.pauses == [1]


def test_the_last_error_is_told_before_the_kubelet_gives_up(world: World) -> None:
    world.api.errors = [busy(4)] * 20
    [error] = prepare(world, claim("a", result(0)))
    assert "later" in error
    assert 15 < sum(world.pauses) < 40


@pytest.mark.parametrize("error", [busy(50), failed(None)], ids=["too late", "no answer"])
def test_other_failures_are_told_at_once(world: World, error: KubeError) -> None:
    world.api.errors = [error]
    [told] = prepare(world, claim("a", result(0)))
    assert error.what in told
    assert world.pauses == []
