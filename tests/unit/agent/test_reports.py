"""Events on the Node object, in the form in which `kubectl describe node` finds them."""

from __future__ import annotations

import re

import pytest

from dra_driver.agent import reports
from dra_driver.agent.reports import Reports
from dra_driver.kube.events import EventType
from tests.unit.agent.recorder import ListRecorder

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "n1"}}


@pytest.mark.parametrize("kind", list(EventType))
def test_events_are_about_the_node(kind: EventType) -> None:
    recorder = ListRecorder()
    made = Reports(recorder, "n1")
    tell = made.warning if kind is EventType.WARNING else made.normal
    tell(reports.CARD_LOST, "card 0000:0d:00.0: gone")
    assert recorder.lines == ["GcuCardLost card 0000:0d:00.0: gone"]
    assert recorder.told == [(NODE, kind, "Serve")]


def test_reasons_are_words_in_camel_case_and_differ() -> None:
    reasons = [value for value in vars(reports).values() if str(value).startswith("Gcu")]
    assert len(set(reasons)) == len(reasons) >= 6
    assert all(re.fullmatch(r"Gcu([A-Z][a-z]+)+", reason) for reason in reasons)
