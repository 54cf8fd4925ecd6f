"""What an agent says at its start of kubelet and container runtime."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dra_driver.agent.events import EventReporter
from dra_driver.agent.lifecycle.node_checks import NodeChecks
from dra_driver.kube.api import Api
from dra_driver.kube.container_runtime import Cdi, cdi_of
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.events import EventType
from dra_driver.kubelet_api.errors import KubeletError
from dra_driver.node.cdi.spec import Injection
from tests.unit.agent.recorder import ListRecorder


class Node:
    """Plays API server and kubelet; `static` is None where the kubelet does not answer."""

    def __init__(self, runtime: str = "containerd://2.4.2", *, static: bool | None = False) -> None:
        self.runtime = runtime
        self.static = static

    def get(self, *_: Any) -> Any:
        if not self.runtime:
            raise Unavailable("no answer")
        return {"status": {"nodeInfo": {"containerRuntimeVersion": self.runtime}}}

    def has_exclusive_cpus(self) -> bool:
        if self.static is None:
            raise KubeletError("no answer")
        return self.static


def found(node: Node, injection: Injection) -> list[tuple[str, EventType]]:
    recorder = ListRecorder()
    reporter = EventReporter(recorder, "n1")
    NodeChecks(cast("Api", node), "n1", node, injection, reporter).run()
    lines = (line.split()[0] for line in recorder.lines)
    return list(zip(lines, (kind for _, kind, _ in recorder.told), strict=True))


UNSUITABLE = [("GcuRuntimeUnsuitable", EventType.WARNING)]


@pytest.mark.parametrize(
    ("node", "injection", "events"),
    [
        (Node(), Injection.CDI, []),
        (Node("cri-o://1.34.1"), Injection.CDI, []),
        (Node("containerd://1.6.36"), Injection.CDI, UNSUITABLE),
        (Node("containerd://1.7.27"), Injection.CDI, [("GcuRuntimeChecked", EventType.NORMAL)]),
        (Node("containerd://1.6.36"), Injection.RUNTIME, []),
        (Node(static=True), Injection.CDI, []),
        (Node(static=True), Injection.RUNTIME, UNSUITABLE),
        (Node(static=None), Injection.RUNTIME, []),
        (Node(""), Injection.CDI, []),
    ],
)
def test_what_is_reported(
    node: Node, injection: Injection, events: list[tuple[str, EventType]]
) -> None:
    assert found(node, injection) == events


@pytest.mark.parametrize(
    ("runtime", "cdi"),
    [
        ("containerd://1.6.36", Cdi.NONE),
        ("containerd://1.7.0", Cdi.OFF_BY_DEFAULT),
        ("containerd://v2.0.1-k3s1", Cdi.ON_BY_DEFAULT),
        ("cri-o://1.22.5", Cdi.NONE),
        ("cri-o://1.23.0", Cdi.ON_BY_DEFAULT),
        ("docker://28.1", Cdi.UNKNOWN),
        ("", Cdi.UNKNOWN),
    ],
)
def test_what_versions_say(runtime: str, cdi: Cdi) -> None:
    assert cdi_of(runtime) is cdi
