"""What the agent's probes answer: when it is ready, and when it is not alive."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.agent import context
from dra_driver.hardware.vendor_files import VendorMounts
from tests.unit.agent.node import Node
from tests.unit.kubelet_api import fake_kubelet


def test_readiness_names_what_is_still_missing(node: Node) -> None:
    agent = node.agent()
    assert agent.ready() == "the agent is starting"
    agent = node.started()
    assert agent.ready() == "waiting for the kubelet to register the driver"
    fake_kubelet.notify(node.sockets.registration, registered=False, error="another version")
    assert "the kubelet refused to register gcu.enflame.com: another version" in str(agent.ready())
    fake_kubelet.notify(node.sockets.registration, registered=True)
    assert "the API server did not answer" in str(agent.ready())


def test_an_agent_whose_socket_is_gone_is_not_alive(node: Node) -> None:
    agent = node.started()
    node.sockets.service.unlink()
    assert agent.live() is None, "a probe does not wait for a call"
    agent._dra._plugin.self_check.check()
    assert f"the agent does not answer on {node.sockets.service}" in str(agent.live())


def test_an_agent_without_one_of_its_threads_is_not_alive(node: Node) -> None:
    agent = node.started()
    dra = agent._dra

    def end_the_plugin(timeout: float) -> None:
        dra._plugin.stop(grace=0)
        dra._plugin._thread.join(timeout)

    parts: dict[str, Callable[[float], None]] = {
        "readiness": agent._readiness.stop,
        "socket-watch": end_the_plugin,
        "reconcile": agent._reconcile_loop.stop,
        "cards": agent._cards.stop,
        "claim-status": dra._statuses.stop,
        "publisher": dra._publisher.stop,
        "events": agent._context.recorder.stop,
    }
    assert agent.live() is None
    for name, end in reversed(parts.items()):
        end(60)
        assert agent.live() == f"the thread {name} ended unexpectedly; see the log"


def test_an_agent_that_sees_the_files_of_an_old_driver_is_started_anew(
    node: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mountinfo = tmp_path / "mountinfo"
    line = f"63 43 254:0 {{}} {node.machine.root} rw - ext4 /dev/vda rw\n"
    mountinfo.write_text(line.format("/machine"))
    monkeypatch.setattr(
        context, "VendorMounts", functools.partial(VendorMounts, mountinfo=mountinfo)
    )
    agent = node.started()
    assert agent.live() is None
    mountinfo.write_text(line.format("/machine//deleted"))
    told = f"{node.machine.root} was replaced on the node, and this container still has the old one"
    assert (agent.live(), agent.ready()) == (told, told)
