"""A claim with a field that the allocator does not support is refused, unless a setting says that
the field may be ignored."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from tests.unit.controller import world
from tests.unit.controller.allocator.build import claim, request

DERIVED = [{"name": "numa", "expression": "device.attributes['a'].b"}]


def put(found: world.World) -> None:
    found.put(RESOURCE_CLAIMS, claim("c", [request(derivedAttributes=DERIVED)]))
    found.put(PODS, world.pod("c-pod", "c"))


def test_it_is_refused_by_name() -> None:
    found = world.World()
    put(found)
    assert found.run_until_idle() == []
    notes = "\n".join(found.recorder.notes)
    assert "claim default/c, request gcu: the field derivedAttributes is not supported" in notes


def test_it_is_served_where_the_field_may_be_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    ignoring = {"ignored_claim_fields": "score, derivedAttributes"}
    monkeypatch.setattr(world, "SETTINGS", world.SETTINGS.model_copy(update=ignoring))
    found = world.World()
    put(found)
    assert found.run_until_idle() == ["c", "c status"]
