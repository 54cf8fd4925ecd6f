"""What a kubelet does to a whole agent: calls given up and made again, and many of them at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from dra_driver.model.effects import Point
from tests.unit.agent.node import CARDS, Node
from tests.unit.kubelet_api.callers import Passing
from tests.unit.node.drs_world import instance, slices
from tests.unit.node.world import SLICES

_CALLS = 64  # what the agent has threads for


def test_a_call_that_was_given_up_is_found_done_and_not_doubled(node: Node) -> None:
    begun, go = threading.Event(), threading.Event()

    def hold_up(point: Point) -> None:
        if point is Point.CDI_WRITE:  # all that is made on the card has been made then
            begun.set()
            assert go.wait(60)

    node.started(Passing(hold_up))
    ref = node.api.put(instance("one", card=0, size=3))
    with pytest.raises(grpc.RpcError) as given_up:
        node.prepare(ref, patience=2.0)
    assert given_up.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert begun.wait(60)
    assert "an earlier call for claim team/one, which was given up" in node.prepare(ref).error
    go.set()
    assert not all(node.prepare(ref).error for _ in range(1000))
    commands = [each.command for each in node.machine.record() if each.changed]
    assert commands.count("create-instance") == 1
    [there] = node.machine.instances(CARDS[0])
    assert f"DRS-{there.uuid}" in "".join(node.files().values())


def test_as_many_calls_at_once_as_there_are_threads(node: Node) -> None:
    """All want a slice of one of two cards: as many as there is room for get one."""
    node.started()
    refs = [node.api.put(slices(f"c{n}", n % 2, 1)) for n in range(_CALLS)]
    with ThreadPoolExecutor(_CALLS) as kubelet:
        errors = list(kubelet.map(lambda ref: node.prepare(ref).error, refs))
    refused = [text for text in errors if text]
    assert len(refused) == _CALLS - 2 * SLICES
    assert all("0 are left" in text for text in refused)
    assert len(node.files()) == 2 * SLICES
