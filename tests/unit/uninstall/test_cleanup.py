"""After an uninstall nothing is left of what agents wrote, and everything of others."""

from __future__ import annotations

from typing import Any, cast

from dra_driver.kube.api import Api, PatchType
from dra_driver.kube.resources import NODES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.uninstall.cleanup import clear_nodes, delete_hidden_slices
from tests.fake_api.api import FakeApi
from tests.unit.controller.test_slice_cleaner import Slices, hidden, visible


def test_hidden_slices_are_deleted_and_visible_ones_stay() -> None:
    slices = Slices(hidden("a"), hidden("b"), visible("c"))
    delete_hidden_slices(cast("Api", slices))
    assert [*slices.slices] == [visible("c")["metadata"]["name"]]


class Nodes(FakeApi):
    """Notes what is applied; tests/control_plane has a server that acts on it."""

    def __init__(self, managers: dict[str, list[str]]) -> None:
        super().__init__()
        self.applied: list[tuple[str, str, Object]] = []
        for name, each in managers.items():
            fields = [{"manager": manager} for manager in each]
            self.create(NODES, {"metadata": {"name": name, "managedFields": fields}})

    def patch(self, resource: Resource, name: str, body: Any, **more: Any) -> Object:
        assert (resource, more["patch_type"]) == (NODES, PatchType.APPLY)
        self.applied.append((name, more["field_manager"], body["metadata"]))
        return {}


def test_only_nodes_that_an_agent_wrote_are_written() -> None:
    api = Nodes(
        {
            "a": ["kubelet", "gcu-dra-agent"],
            "b": ["kubelet"],
            "c": ["gcu-dra-agent-labels", "gcu-dra-agent"],
        }
    )
    clear_nodes(api)
    assert sorted(api.applied) == [
        ("a", "gcu-dra-agent", {"name": "a"}),
        ("c", "gcu-dra-agent", {"name": "c"}),
        ("c", "gcu-dra-agent-labels", {"name": "c"}),
    ]
