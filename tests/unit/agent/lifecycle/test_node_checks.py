"""What an agent says at its start of kubelet and container runtime."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dra_driver.agent.context import AgentContext
from dra_driver.agent.events import EventReporter
from dra_driver.agent.lifecycle.node_checks import NodeChecks
from dra_driver.agent.lifecycle.serving_mode import ServingDecision, ServingMode, ServingState
from dra_driver.kube.api import Api
from dra_driver.kube.container_runtime import Cdi, cdi_of
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.events import EventType
from dra_driver.kubelet_api.pod_resources import KubeletError
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


@dataclass(frozen=True)
class Serving:
    """How a node serves, and whether its kubelet takes names of CDI devices."""

    mode: ServingMode
    injection: Injection
    takes_cdi_names: bool = False


CLAIMS = Serving(ServingMode.DRA, Injection.CDI)
CLAIMS_BY_RUNTIME = Serving(ServingMode.DRA, Injection.RUNTIME)
LIMITS = Serving(ServingMode.DEVICE_PLUGIN, Injection.CDI, takes_cdi_names=True)
LIMITS_OLD_KUBELET = Serving(ServingMode.DEVICE_PLUGIN, Injection.CDI)
LIMITS_BY_RUNTIME = Serving(ServingMode.DEVICE_PLUGIN, Injection.RUNTIME)

OLD, SWITCHED_OFF = "containerd://1.6.36", "containerd://1.7.27"


def reported(node: Node, serving: Serving) -> ListRecorder:
    recorder = ListRecorder()
    state = ServingState(cast("Api", node), "n1", "auto")
    state.decision = ServingDecision(serving.mode, "of the test", has_dra=True)
    reporter = EventReporter(recorder, "n1")
    context = SimpleNamespace(api=node, kubelet=node, serving=state, event_reporter=reporter)
    NodeChecks(
        cast("AgentContext", context),
        "n1",
        injection=serving.injection,
        takes_cdi_names=lambda: serving.takes_cdi_names,
    ).run()
    return recorder


UNSUITABLE = ("GcuRuntimeUnsuitable", EventType.WARNING)
CHECKED = ("GcuRuntimeChecked", EventType.NORMAL)


@pytest.mark.parametrize(
    ("node", "serving", "events"),
    [
        (Node(), CLAIMS, []),
        (Node("cri-o://1.34.1"), CLAIMS, []),
        (Node(OLD), CLAIMS, [UNSUITABLE]),
        (Node(OLD), CLAIMS_BY_RUNTIME, [UNSUITABLE]),  # the variables are in the CDI file
        (Node(OLD), LIMITS, [UNSUITABLE]),
        (Node(OLD), LIMITS_OLD_KUBELET, []),
        (Node(OLD), LIMITS_BY_RUNTIME, []),
        (Node(SWITCHED_OFF), CLAIMS, [CHECKED]),
        (Node(SWITCHED_OFF), LIMITS_BY_RUNTIME, []),
        (Node("docker://28.2.1"), CLAIMS, [CHECKED]),
        (Node(static=True), CLAIMS, []),
        (Node(static=True), CLAIMS_BY_RUNTIME, [UNSUITABLE]),
        (Node(OLD, static=True), CLAIMS_BY_RUNTIME, [UNSUITABLE, UNSUITABLE]),
        (Node(static=True), LIMITS_BY_RUNTIME, []),  # tests/e2e/test_without_dra_cpus.py
        (Node(static=None), CLAIMS_BY_RUNTIME, []),
        (Node("", static=True), CLAIMS_BY_RUNTIME, [UNSUITABLE]),
        (Node(""), CLAIMS, []),
    ],
)
def test_what_is_reported(
    node: Node, serving: Serving, events: list[tuple[str, EventType]]
) -> None:
    recorder = reported(node, serving)
    reasons = (line.split()[0] for line in recorder.lines)
    assert list(zip(reasons, (kind for _, kind, _ in recorder.recorded), strict=True)) == events


@pytest.mark.parametrize(("serving", "helps"), [(CLAIMS, False), (LIMITS, True)])
def test_injection_by_the_runtime_is_a_remedy_without_dra_alone(
    serving: Serving, helps: bool
) -> None:
    [line] = reported(Node(OLD), serving).lines
    assert ("injection=runtime" in line) is helps


@pytest.mark.parametrize(
    ("runtime", "cdi"),
    [
        ("containerd://1.6.36", Cdi.NONE),
        ("containerd://1.7.0", Cdi.CONDITIONAL),
        ("containerd://v2.0.1-k3s1", Cdi.ON_BY_DEFAULT),
        ("cri-o://1.22.5", Cdi.NONE),
        ("cri-o://1.23.0", Cdi.ON_BY_DEFAULT),
        ("docker://24.0.9", Cdi.NONE),
        ("docker://28.2.1", Cdi.CONDITIONAL),
        ("isulad://2.1", Cdi.UNKNOWN),
        ("", Cdi.UNKNOWN),
    ],
)
def test_what_versions_say(runtime: str, cdi: Cdi) -> None:
    assert cdi_of(runtime) is cdi
