"""All that is read is decoded, and of what is written every field.

What the controller does with decoded objects, all tests on `tests.unit.controller.world` show.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench import fleet, lists
from controller.allocator.allocated_devices import allocations_of
from controller.allocator.inventory import Inventory
from controller.cache import nodes, pods
from controller.cache.cache import WATCHED
from controller.cache.claims import allocated_by_us, is_releasable, writers_of_allocation
from controller.cache.pod_requests import resources_of
from controller.legacy_resources.foreign_resources import foreign_resources
from controller.reconcile.templates import is_ours
from dra_driver.asks.templates import template_for
from dra_driver.config.device_config import amount_entry
from dra_driver.kube.resources import (
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import ClaimRef, Object, all_results, reserved_for
from dra_driver.model.names import ANNOTATION_CARDS, RESOURCE_WHOLE
from tests.unit.controller.allocator.build import taint_rule
from tests.unit.controller.informers.decoded import View, decoded


def _writer(claim: Object) -> object:
    return allocated_by_us(claim), writers_of_allocation(claim)


@pytest.mark.parametrize(
    "view",
    [
        ClaimRef.of,
        lambda claim: tuple(all_results(claim)),
        allocations_of,
        _writer,
        is_releasable,
        pods.owning_pod,
        lambda claim: claim["spec"]["devices"]["requests"],
        lambda claim: claim["status"]["allocation"]["nodeSelector"],
        lambda claim: claim["metadata"]["resourceVersion"],
        lambda claim: [(each["name"], each["uid"]) for each in reserved_for(claim)],
    ],
    ids=[
        "ref",
        "results",
        "holds",
        "writer",
        "releasable",
        "owner",
        "requests",
        "node",
        "version",
        "users",
    ],
)
def test_of_a_reserved_claim(view: View) -> None:
    claim = lists.claim(11)
    assert allocated_by_us(claim)
    kept = decoded(RESOURCE_CLAIMS, claim)
    assert kept != claim
    assert view(kept) == view(claim)


def test_of_a_reserved_claim_whose_shares_the_server_dropped() -> None:
    claim = lists.claim(11)
    devices = claim["status"]["allocation"]["devices"]
    [result] = devices["results"]
    del result["shareID"], result["consumedCapacity"]
    amount = amount_entry([result["request"]], {"slices": 3})
    devices["config"] = [{"source": "FromClaim", **amount}]
    [held] = allocations_of(claim)
    assert held.consumed == {"slices": 3 * 10**9}
    assert allocations_of(decoded(RESOURCE_CLAIMS, claim)) == (held,)


def test_a_configured_amount_that_no_device_has_keeps_no_claim_from_us() -> None:
    claim = lists.claim(11)
    config = [{"source": "FromClaim", **amount_entry(["r"], {"slices": 2**70})}]
    claim["status"]["allocation"]["devices"]["config"] = config
    assert decoded(RESOURCE_CLAIMS, claim) == claim


def _without(*fields: str) -> Object:
    claim = lists.claim(1)
    for field in fields:
        del claim["status"][field]
    return claim


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(_without("allocation", "reservedFor"), id="to be allocated"),
        pytest.param(_without("reservedFor"), id="to be released"),
        pytest.param(lists.claim(1) | {"status": {}}, id="without a status"),
    ],
)
def test_what_may_be_written_back_has_all_its_fields(claim: Object) -> None:
    assert decoded(RESOURCE_CLAIMS, claim) == claim


def test_every_kind_that_is_watched_has_a_decoder() -> None:
    named: Object = {"metadata": {"name": "n", "uid": "u"}, "spec": {}}
    for each in WATCHED:
        assert decoded(each, named)["metadata"] == named["metadata"]


def test_of_a_template() -> None:
    made = template_for("default", "enflame-gcu-1")
    assert made is not None
    assert is_ours(decoded(RESOURCE_CLAIM_TEMPLATES, made))


def test_of_a_node() -> None:
    node = lists.node(1)
    node["spec"] |= {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}
    kept = decoded(NODES, node)
    assert nodes.relevant(kept) == nodes.relevant(node)
    given, read = (resources_of(each["status"]["allocatable"]) for each in (node, kept))
    assert read == given
    assert kept["metadata"]["name"] == node["metadata"]["name"]


@pytest.mark.parametrize("annotations", [{}, {ANNOTATION_CARDS: "[]", "other": "x"}])
def test_whose_resources_a_node_offers(annotations: Object) -> None:
    node = lists.node(1)
    node["metadata"]["annotations"] = annotations
    node["status"]["allocatable"] |= {
        RESOURCE_WHOLE: "2",
        "enflame.com/vgcu": "3",
        "hugepages-2Mi": "64Mi",
        "hugepages-1Gi": "0",
    }
    kept = decoded(NODES, node)
    assert foreign_resources(kept) == foreign_resources(node)
    assert "enflame.com/vgcu" in foreign_resources(kept)
    assert kept["status"]["allocatable"]["hugepages-2Mi"] == "64Mi"
    assert "hugepages-1Gi" not in kept["status"]["allocatable"]


def test_of_a_slice() -> None:
    """The allocator may read whatever a device says, fields of later servers included."""
    whole = fleet.resource_slice(1)
    whole["spec"]["devices"][0] |= {"bindsToNode": True, "later": {"field": [1, True]}}
    kept = decoded(RESOURCE_SLICES, whole)
    assert list(kept["spec"]["devices"]) == whole["spec"]["devices"]
    devices = [
        [each.id for each in Inventory.of([one]).devices_of(whole["spec"]["nodeName"])]
        for one in (kept, whole)
    ]
    assert devices[0] == devices[1] != []


def test_slices_are_equal_where_their_devices_are() -> None:
    one, other = fleet.resource_slice(1), fleet.resource_slice(1)
    other["spec"]["devices"][3]["name"] = "another"
    first, again, second = (decoded(RESOURCE_SLICES, each)["spec"] for each in (one, one, other))
    assert first == again
    assert first != second


def test_of_a_slice_without_devices() -> None:
    whole = fleet.resource_slice(1)
    del whole["spec"]["devices"]
    node = whole["spec"]["nodeName"]
    assert Inventory.of([decoded(RESOURCE_SLICES, whole)]).devices_of(node) == ()


@pytest.mark.parametrize(
    ("kind", "obj", "gone"),
    [
        pytest.param(
            PODS, lists.pod(1), ["SETTING_1", "f:", "containerd", "image", "Mount"], id="pod"
        ),
        pytest.param(
            RESOURCE_CLAIMS, lists.claim(1), ["f:reservedFor", "Timestamp", "f:spec"], id="claim"
        ),
        pytest.param(NODES, lists.node(1), ["images", "f:", "Heartbeat", 'capacity"'], id="node"),
    ],
)
def test_what_is_not_read_is_not_kept(kind: Any, obj: Object, gone: list[str]) -> None:
    kept, said = json.dumps(dict(decoded(kind, obj))), json.dumps(obj)
    assert [each for each in gone if each in kept] == []
    assert [each for each in gone if each not in said] == []


@pytest.mark.parametrize(
    ("version", "selector", "decoded_as"),
    [
        pytest.param(DEVICE_TAINT_RULES, None, None, id="1.37, none"),
        pytest.param(DEVICE_TAINT_RULES, {}, {}, id="1.37, an empty one"),
        pytest.param(DEVICE_TAINT_RULES_V1BETA2, None, {}, id="1.36, none"),
        pytest.param(DEVICE_TAINT_RULES_V1BETA2, {"pool": "p"}, {"pool": "p"}, id="1.36, a pool"),
    ],
)
def test_the_version_of_a_taint_rule_says_what_a_missing_selector_selects(
    version: Resource, selector: Object | None, decoded_as: Object | None
) -> None:
    """As kube-scheduler of the server's version has it."""
    rule = taint_rule("r", selector, {"key": "a/b", "effect": "NoSchedule"})
    assert decoded(version, rule)["spec"].get("deviceSelector") == decoded_as
