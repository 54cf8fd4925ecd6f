"""Events on the Node object, in the form in which `kubectl describe node` finds them."""

from __future__ import annotations

import re

import pytest

from dra_driver.agent import events as event_reporter
from dra_driver.agent.events import EventReporter
from dra_driver.kube.events import EventType
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.claims.owner import ContainerAllocation, Owner
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.claims.device_ops import RecreatedInstance
from tests.unit.agent.recorder import ListRecorder

CARD = PciAddress.parse("0000:0d:00.0")
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "n1"}}


@pytest.mark.parametrize("kind", list(EventType))
def test_events_are_about_the_node_and_in_the_log(
    kind: EventType, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    recorder = ListRecorder()
    made = EventReporter(recorder, "n1")
    tell = made.warning if kind is EventType.WARNING else made.normal
    tell(event_reporter.CARD_LOST, "card 0000:0d:00.0: gone")
    assert recorder.lines == ["GcuCardLost card 0000:0d:00.0: gone"]
    assert recorder.recorded == [(NODE, kind, "Serve")]
    assert caplog.messages == ["GcuCardLost: card 0000:0d:00.0: gone"]


@pytest.mark.parametrize(
    ("owner", "regarding"),
    [
        pytest.param(
            ClaimRef("team", "a", "uid-a"),
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"namespace": "team", "name": "a", "uid": "uid-a"},
            },
            id="a claim",
        ),
        pytest.param(
            ContainerAllocation((PluginDevice(CARD, Mode.DRS, 0),), 6, "x"), NODE, id="a container"
        ),
    ],
)
def test_an_instance_that_was_made_anew_is_told_of_its_claim(
    owner: Owner, regarding: Object
) -> None:
    recorder = ListRecorder()
    before, after = Instance(1, "1g.6gb", "old"), Instance(2, "1g.6gb", "new")
    EventReporter(recorder, "n1").instance_recreated(RecreatedInstance(owner, CARD, before, after))
    [line] = recorder.lines
    assert line == (
        f"GcuInstanceRecreated {owner.title}: its DRS instance 1g.6gb old on card {CARD} was gone, "
        "and 1g.6gb new was made in its place; a container that started before has the old one in "
        "TOPS_VISIBLE_DEVICES and cannot use the new one: restart its pod"
    )
    assert recorder.recorded == [(regarding, EventType.WARNING, "Serve")]


def test_reasons_are_words_in_camel_case_and_differ() -> None:
    reasons = [value for value in vars(event_reporter).values() if str(value).startswith("Gcu")]
    assert len(set(reasons)) == len(reasons) >= 6
    assert all(re.fullmatch(r"Gcu([A-Z][a-z]+)+", reason) for reason in reasons)


def test_of_very_many_unknown_claims_the_first_are_named() -> None:
    recorder = ListRecorder()
    EventReporter(recorder, "n1").claims_unknown([f"team/c{i}" for i in range(12)])
    [line] = recorder.lines
    assert ": team/c0, team/c1, " in line
    assert ", team/c9 and 2 more; " in line
