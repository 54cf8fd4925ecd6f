"""What the page shows of nodes is what `inspect` prints, whatever has changed since."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from dra_driver.kube.resources import (
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import render_cards
from dra_driver.model.names import ANNOTATION_CARDS, DRIVER
from kubectl_gcu import output
from kubectl_gcu.cluster.state import ClusterState
from kubectl_gcu.inventory.nodes import inventory
from kubectl_gcu.view.live_inventory import LiveInventory, summary
from tests.browser.fleet import fleet
from tests.unit.kubectl_gcu.inventory.inspected import ANNOTATED, BY_LIMITS

_FIELDS = {
    RESOURCE_SLICES: "slices",
    RESOURCE_CLAIMS: "claims",
    NODES: "nodes",
    PODS: "pods",
    DEVICE_TAINT_RULES: "rules",
}


class Followed:
    """Objects, and the inventory that is kept up to date with them."""

    def __init__(self) -> None:
        self.live = LiveInventory()
        self.objects: dict[Resource, dict[str, Object]] = {each: {} for each in _FIELDS}
        self._take = {
            RESOURCE_SLICES: self.live.on_slice,
            RESOURCE_CLAIMS: self.live.on_claim,
            NODES: self.live.on_node,
            PODS: self.live.on_pod,
            DEVICE_TAINT_RULES: self.live.on_rule,
        }

    def put(self, resource: Resource, obj: Object) -> None:
        uid = obj["metadata"].setdefault("uid", f"{resource.plural} {obj['metadata']['name']}")
        self._take[resource](self.objects[resource].get(uid), obj)
        self.objects[resource][uid] = obj

    def remove(self, resource: Resource, obj: Object) -> None:
        self._take[resource](self.objects[resource].pop(obj["metadata"]["uid"]), None)

    def shown(self) -> dict[str, Any]:
        entries = self.live.entries()
        nodes = [each.data for each in entries]
        return {"nodes": nodes, **summary(entries, self.live.unreadable())}

    def inspected(self, *missing: Resource) -> dict[str, Any]:
        """`missing` may not be read, which `LiveCluster` says."""
        listed: dict[str, Any] = {
            name: tuple(self.objects[resource].values()) for resource, name in _FIELDS.items()
        }
        nodes, said = inventory(ClusterState(**listed, missing=dict.fromkeys(missing, "")))
        return output.as_data(nodes, said[len(missing) :])


@pytest.fixture
def followed() -> Followed:
    found = Followed()
    for resource, obj in (*fleet(5, cards=4), *((NODES, each) for each in BY_LIMITS.nodes)):
        if resource in _FIELDS:
            found.put(resource, obj)
    found.put(PODS, _altered(BY_LIMITS.pods[0], nodeName="b"))
    return found


def test_the_page_has_the_data_of_inspect(followed: Followed) -> None:
    shown = followed.shown()
    assert shown == followed.inspected()
    assert shown["totals"]["cards"] == 23
    assert {each["servedBy"] for each in shown["nodes"]} == {"claims", "limits"}


def _altered(obj: Object, **spec: Any) -> Object:
    return obj | {"spec": (obj.get("spec") or {}) | spec}


def _rule(**selector: str) -> Object:
    taint = {"key": "example.com/drain", "effect": "NoExecute"}
    return {
        "metadata": {"name": "drain"},
        "spec": {"deviceSelector": {"driver": DRIVER, **selector}, "taint": taint},
    }


def changes(followed: Followed) -> Iterator[None]:
    """Each kind of change, one after another."""
    first = {
        resource: next(iter(its.values())) for resource, its in followed.objects.items() if its
    }
    followed.put(NODES, _altered(first[NODES], unschedulable=True))
    yield
    followed.put(DEVICE_TAINT_RULES, _rule(pool=f"{DRIVER}/gcu-node-0002"))
    yield
    followed.put(DEVICE_TAINT_RULES, _rule())
    yield
    followed.remove(PODS, first[PODS])
    yield
    followed.remove(RESOURCE_CLAIMS, first[RESOURCE_CLAIMS])
    yield
    followed.remove(PODS, followed.objects[PODS]["uid-one"])
    yield
    followed.remove(RESOURCE_SLICES, first[RESOURCE_SLICES])
    yield
    followed.remove(DEVICE_TAINT_RULES, _rule() | {"metadata": {"uid": "devicetaintrules drain"}})
    yield
    annotations = {ANNOTATION_CARDS: render_cards(ANNOTATED[1:])}
    node = followed.objects[NODES]["nodes b"]
    followed.put(NODES, node | {"metadata": node["metadata"] | {"annotations": annotations}})
    yield
    broken = {"annotations": {ANNOTATION_CARDS: "{"}}
    followed.put(NODES, node | {"metadata": node["metadata"] | broken})
    yield
    followed.remove(NODES, node)
    yield


def test_after_each_kind_of_change_it_has_the_data_of_inspect(followed: Followed) -> None:
    before = followed.shown()
    for number, _ in enumerate(changes(followed)):
        shown = followed.shown()
        assert shown == followed.inspected(), number
        assert shown != before, number
        before = shown


@pytest.mark.parametrize("seed", range(5))
def test_after_any_changes_it_has_the_data_of_inspect(followed: Followed, seed: int) -> None:
    draw = random.Random(seed)
    everything = [(kind, each) for kind, its in followed.objects.items() for each in its.values()]
    for _ in range(60):
        resource, obj = draw.choice(everything)
        if obj["metadata"]["uid"] in followed.objects[resource] and draw.random() < 0.6:
            followed.remove(resource, obj)
        else:
            followed.put(resource, obj)
        if draw.random() < 0.3:
            assert followed.shown() == followed.inspected()
    assert followed.shown() == followed.inspected()


def test_a_change_that_is_not_shown_changes_no_node(followed: Followed) -> None:
    """So that nothing is sent."""
    before = [each.data for each in followed.live.entries()]
    for pod in [*followed.objects[PODS].values()]:
        followed.put(PODS, pod | {"metadata": pod["metadata"] | {"annotations": {"a": "b"}}})
    after = [each.data for each in followed.live.entries()]
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_without_slices_held_cards_are_shown_as_inspect_shows_them(followed: Followed) -> None:
    """The right may come and go while the page is open."""
    for each in [*followed.objects[RESOURCE_SLICES].values()]:
        followed.remove(RESOURCE_SLICES, each)
    lost = followed.shown()
    followed.live.see_slices(may=False)
    unseen = followed.inspected(RESOURCE_SLICES)
    assert followed.shown() == unseen != lost
    followed.live.see_slices(may=True)
    assert followed.shown() == lost


def test_a_node_that_has_not_changed_is_the_same_object(followed: Followed) -> None:
    before = {each.view.name: each.data for each in followed.live.entries()}
    claim = next(
        each for each in followed.objects[RESOURCE_CLAIMS].values() if each["status"]["allocation"]
    )
    followed.remove(RESOURCE_CLAIMS, claim)
    pool = claim["status"]["allocation"]["devices"]["results"][0]["pool"]
    after = {each.view.name: each.data for each in followed.live.entries()}
    changed = {name for name in after if after[name] is not before[name]}
    assert changed == {pool.removeprefix(f"{DRIVER}/")}
