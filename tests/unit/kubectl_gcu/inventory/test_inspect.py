"""What `kubectl gcu inspect` prints for objects as API servers have them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml

from dra_driver.agent.slices.slices import SliceForm, desired_slices
from dra_driver.kube.resources import RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from kubectl_gcu import output
from kubectl_gcu.cluster.state import ClusterState
from kubectl_gcu.inventory.nodes import inventory
from tests.unit.controller.allocator.build import device, pool
from tests.unit.kubectl_gcu.inventory.inspected import (
    BY_CLAIMS,
    BY_LIMITS,
    TABLES,
    claim,
    pod,
    result,
)


@pytest.mark.parametrize("state", [state for state, _ in TABLES.values()], ids=TABLES)
def test_all_of_a_table_could_be_read(state: ClusterState) -> None:
    """`tests/unit/test_golden.py` compares the tables themselves."""
    _, missing = inventory(state)
    assert missing == []


def test_only_health_is_coloured_and_several_nodes_have_a_sum() -> None:
    both = ClusterState(**{each: getattr(BY_CLAIMS, each) for each in ("slices", "claims", "pods")})
    nodes, _ = inventory(ClusterState(both.slices, both.claims, BY_LIMITS.nodes, both.pods))
    text = output.table(nodes, wide=False, colour=True)
    assert text.count("\x1b[31m") == 2
    assert "\x1b[31munhealthy: lost\x1b[0m" in text
    assert text.splitlines()[-1].startswith("all 2 nodes: 7 cards: 1 free")


def test_json_and_yaml_say_the_same() -> None:
    nodes, _ = inventory(BY_CLAIMS)
    data = output.as_data(nodes, ["a right"])
    assert data == json.loads(output.as_text("json", data))
    assert data == yaml.safe_load(output.as_text("yaml", data))
    assert data["missing"] == ["a right"]
    assert data["totals"]["slices"] == {"used": 5, "total": 6}
    # A sixth of the shared card, half of that in DRS mode, all of the free one, and nothing of the
    # one that is unhealthy.
    free = [tuple(each["free"].values()) for each in data["nodes"][0]["cards"]]
    assert free == [(7162, 16), (21488, 50), (42976, 100), (0, 0)]
    summed = {"memoryMiB": 71626, "cores": 166}
    assert data["nodes"][0]["totals"]["freeCapacity"] == data["totals"]["freeCapacity"] == summed
    [node] = data["nodes"]
    assert node["servedBy"] == "claims"
    card = node["cards"][0]
    assert (card["minor"], card["used"], card["slices"], card["mode"]) == (5, 5, 6, "shared")
    [pod_] = card["holders"][0]["pods"]
    assert (pod_["name"], pod_["containers"], pod_["phase"]) == ("one-pod", ["main"], "Running")


@pytest.mark.parametrize("wide", [True, False])
def test_what_is_free_is_added_up_for_nodes_and_for_all(*, wide: bool) -> None:
    nodes, _ = inventory(replace(BY_CLAIMS, nodes=BY_LIMITS.nodes))
    totals = output.table(nodes, wide=wide, colour=False).splitlines()[-3:]
    free = [line.partition("; free: ")[2] for line in totals]
    summed = ["71626 MiB, 166 %", "14325 MiB, 133 %", "85951 MiB, 299 %"]
    assert free == (summed if wide else [""] * 3)


def test_more_allocated_than_there_is_takes_nothing_from_what_is_free_elsewhere() -> None:
    """`kubectl gcu doctor` reports such a card."""
    more = claim("more", result("shared", 1, consumedCapacity={"slices": "4"}))
    nodes, _ = inventory(replace(BY_CLAIMS, claims=(*BY_CLAIMS.claims, more)))
    [node] = output.as_data(nodes, [])["nodes"]
    card = node["cards"][0]
    assert (card["used"], card["free"]) == (9, {"memoryMiB": 0, "cores": 0})
    assert node["totals"]["freeCapacity"] == {"memoryMiB": 64464, "cores": 150}


def test_hidden_slices_are_the_same_cards() -> None:
    """Their node is their owner; what is wrong with a card is an attribute there."""
    node = {"metadata": {"name": "a", "uid": "1"}}
    devices = BY_CLAIMS.slices[0]["spec"]["devices"]
    hidden = tuple(desired_slices(node, devices, 1, SliceForm.HIDDEN))
    visible, _ = inventory(BY_CLAIMS)
    again, _ = inventory(ClusterState(hidden, BY_CLAIMS.claims, (), BY_CLAIMS.pods))
    assert again == visible


def test_an_old_generation_of_a_pool_and_a_card_that_nobody_publishes_any_more() -> None:
    [old] = pool("a", [device("whole", 7)])
    [new] = pool("a", [device("whole", 8)])
    new["metadata"]["name"] = "newer"
    new["spec"]["pool"]["generation"] = 2
    nodes, _ = inventory(ClusterState((new, old), (claim("one", result("whole", 7)),)))
    found = {str(card.address): card for card in nodes[0].cards}
    assert {name: card.problems for name, card in found.items()} == {
        "0000:07:00.0": ("not published",),
        "0000:08:00.0": (),
    }


def test_without_the_right_to_list_slices_held_cards_are_shown_and_not_judged() -> None:
    unseen = replace(BY_CLAIMS, slices=(), missing={RESOURCE_SLICES: "you may not"})
    nodes, missing = inventory(unseen)
    assert missing == ["you may not"]
    lines = output.table(nodes, wide=False, colour=True).splitlines()
    shown = [line.split()[1:7] for line in lines[1:4]]
    assert shown == [
        ["0000:01:00.0", "0", "-", "shared", "5", "-"],
        ["0000:01:00.0", "0", "-", "shared", "5", "-"],
        ["0000:02:00.0", "-", "-", "drs", "3", "-"],
    ]
    assert lines[-1] == "a: 2 cards: 0 free, 1 shared (5 slices), 1 in DRS mode (size 3)"
    [node] = output.as_data(nodes, missing)["nodes"]
    assert [card["problems"] for card in node["cards"]] == [[], []]
    assert node["totals"]["freeCapacity"] == {"memoryMiB": 0, "cores": 0}


def test_the_cards_of_a_pool_of_which_a_slice_is_missing() -> None:
    """They are shown, although nobody is given one."""
    [half] = pool("a", [device("whole", 7)])
    half["spec"]["pool"]["resourceSliceCount"] = 2
    nodes, _ = inventory(ClusterState((half,)))
    assert [str(card.address) for card in nodes[0].cards] == ["0000:07:00.0"]


def test_cards_of_one_kind_have_their_own_uuid() -> None:
    devices = [device(mode, bus) for bus in (1, 2) for mode in ("whole", "shared")]
    for number, published in enumerate(devices):
        published["attributes"]["uuid"] = {"string": f"TPUA{number // 2}"}
    slices = [part for node in "ab" for part in pool(node, devices)]
    nodes, _ = inventory(ClusterState(tuple(slices)))
    cards = [(node.name, card.address.bus, card.uuid) for node in nodes for card in node.cards]
    assert cards == [("a", 1, "TPUA0"), ("a", 2, "TPUA1"), ("b", 1, "TPUA0"), ("b", 2, "TPUA1")]


def users(held: Object, user: Object) -> dict[int, tuple[str, ...]]:
    """The containers of the pod that use what the claim holds of a card, by the amount."""
    nodes, _ = inventory(replace(BY_CLAIMS, claims=(held,), pods=(user,)))
    holders = [holder for card in nodes[0].cards for holder in card.holders]
    return {holder.amount: holder.pods[0].containers for holder in holders}


def test_the_containers_of_a_claim_that_kube_scheduler_made_for_limits() -> None:
    """Another claim's mappings are not its own."""
    user = pod("one")
    del user["spec"]["resourceClaims"], user["spec"]["containers"][0]["resources"]
    user["status"]["extendedResourceClaimStatus"] = {
        "resourceClaimName": "one",
        "requestMappings": [
            {"containerName": "side", "requestName": "container-1-request-0"},
            {"containerName": "main", "requestName": "container-0-request-0"},
        ],
    }
    shares = [
        result("shared", 1, request=f"container-{i}-request-0", consumedCapacity={"slices": slices})
        for i, slices in enumerate("32")
    ]
    assert users(claim("one", *shares), user) == {3: ("main",), 2: ("side",)}
    other = claim("one", *shares)
    other["metadata"] |= {"name": "other"}
    assert users(other, user) == {3: (), 2: ()}


def test_the_containers_of_each_request() -> None:
    """As the webhook makes a claim of limits, and of alternatives; `all` names no request."""
    user = pod("one")
    user["spec"]["containers"] = [
        {"name": name, "resources": {"claims": [{"name": "gcu", "request": request}]}}
        for name, request in (("policy", "gcu-0"), ("reward", "gcu-1"))
    ] + [{"name": "all", "resources": {"claims": [{"name": "gcu"}]}}]
    shares = [
        result("shared", 1, request=request, consumedCapacity={"slices": slices})
        for request, slices in (("gcu-0", "3"), ("gcu-1/small", "2"))
    ]
    assert users(claim("one", *shares), user) == {3: ("policy", "all"), 2: ("reward", "all")}


def terminated(code: int = 0) -> Object:
    return {"terminated": {"exitCode": code}}


@pytest.mark.parametrize(
    ("spec", "state", "ended"),
    [
        pytest.param({"restartPolicy": "Never"}, terminated(1), True, id="never again"),
        pytest.param({"restartPolicy": "OnFailure"}, terminated(), True, id="it did its work"),
        pytest.param({"restartPolicy": "OnFailure"}, terminated(1), False, id="once more"),
        pytest.param({"restartPolicy": "Always"}, terminated(), False, id="always"),
        pytest.param({}, terminated(), False, id="always, by default"),
        pytest.param({"restartPolicy": "Never"}, {"running": {}}, False, id="it runs"),
    ],
)
def test_a_container_that_has_ended_is_marked(spec: Object, state: Object, *, ended: bool) -> None:
    user = pod("one")
    user["spec"] |= spec
    user["status"]["containerStatuses"] = [{"name": "main", "state": state}]
    nodes, _ = inventory(replace(BY_CLAIMS, pods=(user,)))
    first = output.table(nodes, wide=False, colour=False).splitlines()[1]
    assert first.partition("team/one-pod")[2].strip() == ("main (ended)" if ended else "main")
    [pod_] = output.as_data(nodes, [])["nodes"][0]["cards"][0]["holders"][0]["pods"]
    assert (pod_["containers"], pod_["ended"]) == (["main"], ["main"] if ended else [])


def test_an_init_container_that_has_ended_is_marked() -> None:
    user = pod("one")
    user["spec"]["initContainers"] = [user["spec"]["containers"].pop(0)]
    user["status"]["initContainerStatuses"] = [{"name": "main", "state": terminated()}]
    nodes, _ = inventory(replace(BY_CLAIMS, pods=(user,)))
    assert "main (ended)" in output.table(nodes, wide=False, colour=False).splitlines()[1]
