"""What becomes of a pod with limits by memory and compute where kubelets count slices and sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from controller.extender.annotated_cluster import AnnotatedCluster
from controller.webhook.counted_limits import count_limits
from controller.webhook.service import LIMITS, WebhookService, without_dra
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import NodeCard
from dra_driver.model.errors import Refused
from dra_driver.model.names import ANNOTATION_ASKED, ANNOTATION_ISOLATION
from dra_driver.model.names import RESOURCE_CORE as CORE
from dra_driver.model.names import RESOURCE_DRS as DRS
from dra_driver.model.names import RESOURCE_MEMORY as MEMORY
from dra_driver.model.names import RESOURCE_SHARED as SHARED
from tests.control_plane.legacy import asking
from tests.unit.asks.cases import REFUSED_MEASURES, Case
from tests.unit.controller.extender.build import card, node
from tests.unit.controller.webhook.patching import admitted, patched

S60 = card(1, model="S60", memory_mib=42976)
BIG = replace(S60, model="L600", memory_mib=144_000, profiles=("1g.22gb", "3g.68gb", "6g.136gb"))
FEW = replace(S60, model="T20", slices=4, profiles=("2g.10gb", "4g.20gb"), total=4)
SMALL = replace(S60, model="I20", memory_mib=16_384, profiles=("1g.2gb", "3g.8gb", "6g.16gb"))
LOST = replace(S60, model="", memory_mib=0)
SLICED = {ANNOTATION_ISOLATION: "best-effort"}


def cluster(**cards: NodeCard) -> AnnotatedCluster:
    """Of nodes with a card each, and a label for their names."""
    made = AnnotatedCluster()
    for name, each in cards.items():
        found = node(name, each)
        found["metadata"]["labels"] = {"node": name, "zone": "a"}
        made.put_node(found)
    return made


def translated(
    nodes: AnnotatedCluster,
    *limits: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """The pod after the webhook; a second call changes nothing."""
    pod = asking("team", *limits, **spec)
    if annotations is not None:
        pod["metadata"]["annotations"] = dict(annotations)
    for each in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]:
        each["resources"]["requests"] = dict(each["resources"]["limits"])
    count = partial(count_limits, card_kinds=nodes.card_kinds)
    made = patched(pod, count(pod))
    assert count(made) == []
    return made


def limits_of(pod: Object) -> list[dict[str, str]]:
    """Of containers, then of init containers; the requests are the same."""
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
    for each in containers:
        assert each["resources"]["limits"] == each["resources"]["requests"]
    return [each["resources"]["limits"] for each in containers]


# By memory (MiB), compute, and the size and the slices of an S60 with six slices of 7162 MiB.
ONE_MODEL: dict[str, tuple[dict[str, str], str, str]] = {
    "memory": ({MEMORY: "7168"}, "3", "2"),
    "memory of a slice to the last MiB": ({MEMORY: "7162"}, "3", "1"),
    "compute": ({CORE: "24"}, "3", "2"),
    "both fit into the smallest": ({MEMORY: "6144", CORE: "16"}, "1", "1"),
    "compute decides": ({MEMORY: "6144", CORE: "51"}, "6", "4"),
    "memory decides": ({MEMORY: "30720", CORE: "50"}, "6", "5"),
    "almost a card": ({CORE: "99"}, "6", "6"),
}


@pytest.mark.parametrize(("asked", "size", "slices"), ONE_MODEL.values(), ids=ONE_MODEL)
def test_the_smallest_part_that_covers(asked: dict[str, str], size: str, slices: str) -> None:
    nodes = cluster(one=S60)
    assert limits_of(translated(nodes, {"cpu": "2", **asked})) == [{"cpu": "2", DRS: size}]
    assert limits_of(translated(nodes, asked, annotations=SLICED)) == [{SHARED: slices}]


def test_several_models_take_what_covers_on_each() -> None:
    nodes = cluster(small=S60, big=BIG)
    asked = {MEMORY: "20480"}
    assert limits_of(translated(nodes, asked)) == [{DRS: "3"}]
    assert limits_of(translated(nodes, asked, annotations=SLICED)) == [{SHARED: "3"}]
    big, small = {"node": "big"}, {"node": "small", "zone": "a"}
    assert limits_of(translated(nodes, asked, nodeSelector=big)) == [{DRS: "1"}]
    assert limits_of(translated(nodes, asked, nodeSelector=small)) == [{DRS: "3"}]
    few = cluster(six=S60, four=FEW)
    assert limits_of(translated(few, {CORE: "30"}, annotations=SLICED)) == [{SHARED: "2"}]
    assert limits_of(translated(few, {CORE: "40"}, annotations=SLICED)) == [{SHARED: "3"}]


def test_a_model_that_cannot_be_meant_does_not_count() -> None:
    """T20 has no profile of size 3, so no kubelet there admits the pod."""
    assert limits_of(translated(cluster(six=S60, four=FEW), {MEMORY: "20480"})) == [{DRS: "4"}]
    assert limits_of(translated(cluster(six=S60, four=FEW), {MEMORY: "30720"})) == [{DRS: "6"}]
    nothing = replace(BIG, profiles=(), total=0)
    assert limits_of(translated(cluster(six=S60, big=nothing), {MEMORY: "20480"})) == [{DRS: "3"}]
    assert limits_of(translated(cluster(six=S60, lost=LOST), {MEMORY: "1"}, annotations=SLICED))


def test_init_containers_and_several_containers() -> None:
    init = [{"name": "before", "resources": {"limits": {CORE: "10"}}}]
    made = translated(cluster(one=S60), {MEMORY: "20480"}, {}, {CORE: "60"}, initContainers=init)
    assert limits_of(made) == [{DRS: "3"}, {}, {DRS: "6"}, {DRS: "1"}]


def test_the_pod_says_what_was_asked() -> None:
    made = translated(
        cluster(one=S60), {MEMORY: "6144", CORE: "20"}, {"cpu": "1"}, annotations={"a": "b"}
    )
    found = made["metadata"]["annotations"]
    assert found["a"] == "b"
    assert json.loads(found[ANNOTATION_ASKED]) == {"c0": {MEMORY: "6144", CORE: "20"}}
    assert translated(cluster(one=S60), {CORE: "20"})["metadata"]["annotations"]


REFUSED: dict[str, tuple[dict[str, NodeCard], dict[str, str], dict[str, Any], str]] = {
    "no node": ({}, {CORE: "10"}, {}, "^no node has reported GCUs.*once the nodes' agents run"),
    "no node with these labels": (
        {"one": S60},
        {CORE: "10"},
        {"nodeSelector": {"node": "two"}},
        "^no node with the labels node=two has reported GCUs",
    ),
    "no node with a part of that kind": (
        {"one": replace(S60, profiles=(), total=0)},
        {CORE: "10"},
        {},
        "^no node offers DRS instances; change the annotation gcu.enflame.com/isolation",
    ),
    "more than every profile": (
        {"one": S60, "two": SMALL},
        {MEMORY: "41984"},
        {},
        r"^container c0 asks .*-memory: 41984, .* DRS instances: I20 \(1g.2gb, .*\); S60 .*; ask",
    ),
    "more than all slices": (
        {"one": S60},
        {MEMORY: "43000", CORE: "1"},
        {"annotations": SLICED},
        r"more than any card has as shared slices: S60 \(6 slices of 7162 MiB\); ask",
    ),
    "less on a model that could be taken": (
        {"one": S60, "two": SMALL},
        {MEMORY: "20480"},
        {},
        "for which enflame.com/drs-gcu: 3 is needed, and that is less on I20 .*; select nodes",
    ),
}


@pytest.mark.parametrize(("nodes", "asked", "more", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_in_words(
    nodes: dict[str, NodeCard], asked: dict[str, str], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refused, match=words):
        translated(cluster(**nodes), asked, **more)


@pytest.mark.parametrize("case", REFUSED_MEASURES.values(), ids=REFUSED_MEASURES)
def test_the_policies_see_what_cannot_be_translated(case: Case) -> None:
    made = translated(cluster(one=S60), *case.limits, annotations=case.annotations)
    assert limits_of(made) == case.limits
    assert ANNOTATION_ASKED not in made["metadata"]["annotations"]


def test_others_are_left() -> None:
    """The kubelet counts them, and skips those of 0."""
    for limits in ({SHARED: "2"}, {CORE: "0", MEMORY: "0"}):
        assert limits_of(translated(cluster(one=S60), limits)) == [limits]
    assert limits_of(translated(cluster(one=S60), {CORE: "10"}, {CORE: "0"}))[1] == {CORE: "0"}


def test_an_api_server_is_answered() -> None:
    """Of limits alone: there are no claims."""
    kinds = cluster(one=S60).card_kinds
    answers = WebhookService(without_dra(kinds), CollectorRegistry()).answers
    assert answers.keys() == {LIMITS}
    made = admitted(answers[LIMITS], asking("team", {CORE: "24"}))
    assert made["spec"]["containers"][0]["resources"]["limits"] == {DRS: "3"}
