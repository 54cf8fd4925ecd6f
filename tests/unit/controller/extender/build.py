"""Nodes, cards and pods as the extender sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from controller.allocator.packing.policy import BINPACK, Policy
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.decide import filter_nodes, place
from controller.extender.limit_request import parse_limits
from controller.extender.node_allocations import BoundPod
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold, NodeCard, render_cards
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED, ANNOTATION_CARDS
from dra_driver.model.pci import PciAddress

SHARED = "enflame.com/shared-gcu"
DRS = "enflame.com/drs-gcu"
WHOLE = "enflame.com/gcu"


def address(number: int) -> PciAddress:
    return PciAddress(0, number, 0, 0)


def card(number: int, mode: Mode | None = None, *held: Hold, **changes: Any) -> NodeCard:
    """Card `number`: six slices, DRS sizes 1, 3 and 6."""
    made = NodeCard(
        address(number),
        index=number,
        minor=10 + number,
        slices=6,
        profiles=("1g.6gb", "3g.20gb", "6g.40gb"),
        total=6,
        mode=mode,
        held=held,
    )
    return replace(made, **changes)


def node(name: str, *cards: NodeCard) -> Object:
    return {"metadata": {"name": name, "annotations": {ANNOTATION_CARDS: render_cards(cards)}}}


def container(name: str, limits: Mapping[str, object], **more: object) -> Object:
    return {"name": name, "resources": {"limits": dict(limits)}, **more}


def pod(
    name: str,
    *limits: Mapping[str, object],
    on: str = "",
    cards: str = "",
    phase: str = "Pending",
    init: tuple[Object, ...] = (),
) -> Object:
    """A pod of one container for each of `limits`, called c0, c1, …; its UID is ``uid-<name>``."""
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": f"uid-{name}",
            "annotations": {ANNOTATION_ASSIGNED: cards} if cards else {},
        },
        "spec": {
            "containers": [container(f"c{n}", each) for n, each in enumerate(limits)],
            "initContainers": list(init),
            **({"nodeName": on} if on else {}),
        },
        "status": {"phase": phase},
    }


def of_workload(uid: str, pod: Object) -> Object:
    """The pod as a ReplicaSet of that UID makes it."""
    owner = {"kind": "ReplicaSet", "name": uid, "uid": uid, "controller": True}
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}


def hold(pod: str, amount: int = 1, container: str = "c0") -> Hold:
    return Hold(f"uid-{pod}", container, amount)


def view(*objects: Object) -> AnnotatedCluster:
    """Of nodes and pods; what has a spec is a pod."""
    made = AnnotatedCluster()
    for each in objects:
        if "spec" in each:
            made.put_pod(each)
        else:
            made.put_node(each)
    return made


def placed(
    found: AnnotatedCluster, asking: Object, on: str = "n", policy: Policy = BINPACK
) -> BoundPod:
    """The pod with the cards that it gets on the node."""
    asked = parse_limits(asking)
    assert asked is not None
    return place(found, policy, asking, asked, on)


def problem(found: AnnotatedCluster, on: str) -> str:
    """Why the node takes no pod that requests a slice; empty if it takes one."""
    return filter_nodes(found, BINPACK, pod("probe", {SHARED: 1}), [on]).unfit.get(on, "")


def slices_left(found: AnnotatedCluster, on: str = "n") -> int:
    """The most slices that one more pod can have on the node."""
    fitting = [
        n for n in range(1, 7) if filter_nodes(found, BINPACK, pod("probe", {SHARED: n}), [on]).fit
    ]
    return max(fitting, default=0)
