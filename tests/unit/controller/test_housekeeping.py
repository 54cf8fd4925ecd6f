"""What the controller does beside allocating, by its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from controller.housekeeping import Housekeeping
from controller.leaderelection.fence import Fence
from controller.own_pod import OwnPod
from controller.settings import ControllerSettings
from dra_driver.kube.api import Api, Change
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import RESOURCE_WHOLE
from tests.unit.agent.recorder import ListRecorder
from tests.unit.controller.legacy_resources.test_decision import node

ALWAYS = {"reflector-pods", "missing-agents"}
CLEANER = {"slice-cleaner"}
DECISION = {"reflector-serviceaccounts", "limits-decision"}


def made(*, serves_claims: bool = True, **settings: str) -> Housekeeping:
    return Housekeeping(
        ControllerSettings.model_validate(settings),
        cast("Api", None),
        Fence(lambda: 0.0),
        OwnPod(cast("Api", None), ListRecorder(), namespace="gcu", name="controller-1"),
        CollectorRegistry(),
        serves_claims=serves_claims,
        clock=lambda: 0.0,
    )


@pytest.mark.parametrize(
    ("serves_claims", "settings", "threads"),
    [
        (True, {}, ALWAYS),
        (True, {"slice_form": "hidden"}, ALWAYS | CLEANER),
        (True, {"legacy_resources_config": "limits"}, ALWAYS | DECISION),
        (False, {"slice_form": "hidden", "legacy_resources_config": "limits"}, ALWAYS),
    ],
    ids=["default", "hidden slices", "limits are decided", "no DRA"],
)
def test_its_threads(serves_claims: bool, settings: dict[str, str], threads: set[str]) -> None:
    found = made(serves_claims=serves_claims, **settings)
    assert {each._thread.name for each in found._parts.values()} == threads
    assert not any(found.threads().values())  # nothing was started


class Nodes:
    """A handler of a watch of nodes."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_replace(self, items: Sequence[Object]) -> None:
        self.seen += [each["metadata"]["name"] for each in items]

    def on_event(self, change: Change, obj: Object) -> None:
        self.seen.append(f"{change} {obj['metadata']['name']}")


def test_the_decision_sees_what_the_cache_is_given() -> None:
    nodes, found = Nodes(), made(legacy_resources_config="limits")
    handler = found.follow_nodes(nodes)
    handler.on_replace([node({RESOURCE_WHOLE: "8"}, name="a"), node(name="b")])
    handler.on_event(Change.DELETED, node(name="b"))
    assert nodes.seen == ["a", "b", "DELETED b"]
    assert found._foreign is not None
    assert found._foreign.by_node() == {"a": (RESOURCE_WHOLE,)}


def test_without_a_decision_nobody_else_sees_them() -> None:
    nodes = Nodes()
    assert made().follow_nodes(nodes) is nodes
