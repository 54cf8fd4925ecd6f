"""A call of efsmi that is still running when its agent is killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from dra_driver.model.claims.claim import ClaimRef
from tests.cluster.waiting import wait_until
from tests.kill.grants import Kind, wanted
from tests.kill.kubelet import Kubelet, NoAnswer
from tests.kill.node import Node
from tests.kill.outside import await_published, check

pytestmark = pytest.mark.control_plane

_HANGS = 2.0
_KINDS = (Kind.DRS, pytest.param(Kind.DRS_BESIDE, marks=pytest.mark.matrix))


def killed_amid(node: Node, command: str, call: Callable[[], object]) -> None:
    """Kill the agent while efsmi runs that command for the call."""

    def try_call() -> None:
        with suppress(NoAnswer):
            call()

    def begun() -> bool:
        return any(e.command == command and e.event == "begin" for e in node.machine.record()[old:])

    old = len(node.machine.record())
    caller = threading.Thread(target=try_call)
    caller.start()
    wait_until(begun, 60.0, command, seen=node.log, interval=0.02)
    node.down()
    caller.join()


def prepare(node: Node, kind: Kind) -> tuple[Kubelet, ClaimRef]:
    node.serve_others()
    return node.kubelet, node.add(wanted(kind))


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(
    ("fault", "again"),
    [
        ("create-hangs-after-making", "pod gone"),
        pytest.param("create-hangs", "retry", marks=pytest.mark.matrix),
        pytest.param("create-hangs", "pod gone", marks=pytest.mark.matrix),
        pytest.param("create-hangs-after-making", "retry", marks=pytest.mark.matrix),
    ],
)
def test_a_create(node: Node, fault: str, kind: Kind, again: str) -> None:
    kubelet, ref = prepare(node, kind)
    node.machine.set_fault(fault, seconds=_HANGS, times=1)
    killed_amid(node, "create-instance", lambda: kubelet.prepare(ref))
    node.up()
    if again == "retry":
        assert node.kubelet.prepare(ref) == ""
        check(node)
    assert node.kubelet.unprepare(ref) == ""
    del node.held[ref]
    check(node)
    await_published(node)


@pytest.mark.parametrize("kind", _KINDS)
def test_a_destroy(node: Node, kind: Kind) -> None:
    kubelet, ref = prepare(node, kind)
    assert kubelet.prepare(ref) == ""
    node.machine.set_fault("destroy-hangs", seconds=_HANGS, times=1)
    killed_amid(node, "destroy-instance", lambda: kubelet.unprepare(ref))
    node.up()
    del node.held[ref]
    check(node)
    assert node.kubelet.unprepare(ref) == ""
    check(node)
    await_published(node)
