"""What `kubectl gcu inspect` prints for objects as API servers have them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_driver.agent.slices.slices import SliceForm, desired_slices
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import HeldInstance, Hold, NodeCard, render_cards
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS, DRIVER
from dra_driver.model.pci import PciAddress
from kubectl_gcu import output
from kubectl_gcu.cluster.state import ClusterState
from kubectl_gcu.main import inventory
from tests.unit.controller.allocator.build import UNHEALTHY, device, pool

HERE = Path(__file__).parent
MODES = ("whole", "shared", "drs")


def result(mode: str, bus: int, **more: Any) -> Object:
    name = f"{mode}-0000-{bus:02x}-00-0"
    return {
        "request": "gcu",
        "driver": DRIVER,
        "pool": f"{DRIVER}/a",
        "device": name,
    } | more


def claim(name: str, *results: Object, data: Object | None = None) -> Object:
    """Allocated, and reserved for the pod of that name; prepared, if `data` is there."""
    status: Object = {
        "allocation": {"devices": {"results": list(results)}},
        "reservedFor": [{"resource": "pods", "name": f"{name}-pod", "uid": f"uid-{name}"}],
    }
    if data is not None:
        entry = {key: results[0][key] for key in ("driver", "pool", "device")}
        status["devices"] = [entry | {"data": data}]
    return {"metadata": {"namespace": "team", "name": name, "uid": name}, "status": status}


def pod(name: str) -> Object:
    """Its container `main` uses the claim of that name, `side` does not."""
    uses = {"name": "main", "resources": {"claims": [{"name": "gcu"}]}}
    return {
        "metadata": {"namespace": "team", "name": f"{name}-pod", "uid": f"uid-{name}"},
        "spec": {
            "resourceClaims": [{"name": "gcu", "resourceClaimName": name}],
            "containers": [uses, {"name": "side"}],
        },
        "status": {"phase": "Running"},
    }


SLICES = {"consumedCapacity": {"slices": "2"}}
SIZE = {"consumedCapacity": {"size": "3"}}
BY_CLAIMS = ClusterState(
    slices=tuple(
        pool(
            "a",
            [
                *(device(mode, bus) for bus in (1, 2, 3) for mode in MODES),
                *(device(mode, 4, taints=[UNHEALTHY]) for mode in MODES),
            ],
        )
    ),
    claims=(
        claim("one", result("shared", 1, **SLICES), data={"index": 0, "minor": 5}),
        claim("two", result("shared", 1, consumedCapacity={"slices": "3"})),
        claim("instance", result("drs", 2, **SIZE), data={"profile": "3g.20gb"}),
        claim("watcher", result("whole", 2, adminAccess=True)),
        claim("waits"),
    ),
    pods=(pod("one"), pod("two"), pod("instance")),
)
ANNOTATED = (
    NodeCard(
        PciAddress(0, 1, 0, 0),
        index=0,
        minor=3,
        slices=6,
        total=6,
        mode=Mode.DRS,
        held=(
            Hold("uid-one", "main", 3, HeldInstance("3g.20gb", 1, 2, "u")),
            Hold("uid-strange", "c", 1),
        ),
        model="S60",
        uuid="TPUA1",
        memory_mib=42976,
    ),
    NodeCard(PciAddress(0, 2, 0, 0), index=1, minor=4, total=6, mode=Mode.DRS),
    NodeCard(PciAddress(0, 3, 0, 0), index=2, minor=5, slices=6, problem="lost"),
)


def annotated(name: str, text: str) -> Object:
    return {"metadata": {"name": name, "annotations": {ANNOTATION_CARDS: text}}}


BY_LIMITS = ClusterState(
    nodes=(annotated("b", render_cards(ANNOTATED)), {"metadata": {"name": "c"}}),
    pods=(pod("one"),),
)


@pytest.mark.parametrize(
    ("state", "wide", "golden"),
    [(BY_CLAIMS, False, "claims.txt"), (BY_LIMITS, True, "limits-wide.txt")],
    ids=["claims", "limits"],
)
def test_a_table(state: ClusterState, golden: str, *, wide: bool) -> None:
    nodes, missing = inventory(state)
    assert missing == []
    assert output.table(nodes, wide=wide, colour=False) == (HERE / golden).read_text()


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
    new["spec"]["pool"]["generation"] = 2
    nodes, _ = inventory(ClusterState((new, old), (claim("one", result("whole", 7)),)))
    found = {str(card.address): card for card in nodes[0].cards}
    assert {name: card.problems for name, card in found.items()} == {
        "0000:07:00.0": ("not published",),
        "0000:08:00.0": (),
    }


def test_as_the_vendors_gcushare() -> None:
    nodes, _ = inventory(BY_LIMITS)
    [node] = json.loads(output.as_gcushare(nodes))
    assert (node["name"], node["totalGCU"], node["usedGCU"], node["availableGCU"]) == (
        "b",
        18,
        4,
        14,
    )
    card = node["devices"]["3"]
    assert (card["virt"], card["totalGCU"], card["availableGCU"]) == ("DRS", 6, 2)
    assert card["pods"][0]["containers"] == {
        "main": {"allocated": True, "request": 3, "profileName": "3g.20gb"}
    }
    assert "virt" not in node["devices"]["5"]
