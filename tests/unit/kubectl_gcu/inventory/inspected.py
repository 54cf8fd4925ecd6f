"""A cluster that `kubectl gcu inspect` prints, as API servers have its objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import HeldInstance, Hold, NodeCard, render_cards
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS, DRIVER
from dra_driver.model.pci import PciAddress
from kubectl_gcu import output
from kubectl_gcu.cluster.state import ClusterState
from kubectl_gcu.inventory.nodes import inventory
from tests.unit.controller.allocator.build import UNHEALTHY, device, pool

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

TABLES: Final[Mapping[str, tuple[ClusterState, bool]]] = {
    "claims.txt": (BY_CLAIMS, False),
    "limits-wide.txt": (BY_LIMITS, True),
}
"""By the file beside this one that has the table: what it is printed of, and whether it is wide."""


def printed(name: str) -> str:
    """The table of that file."""
    state, wide = TABLES[name]
    nodes, _ = inventory(state)
    return output.table(nodes, wide=wide, colour=False)
