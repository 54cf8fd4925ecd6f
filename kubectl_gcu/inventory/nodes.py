"""All nodes with GCUs, whichever way they are served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from controller.allocator.inventory import Inventory
from dra_driver.kube.resources import RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from kubectl_gcu.cluster.state import ClusterState
from kubectl_gcu.inventory.by_claims import nodes_by_claims
from kubectl_gcu.inventory.by_limits import nodes_by_limits
from kubectl_gcu.inventory.views import NodeView


def inventory(state: ClusterState) -> tuple[list[NodeView], list[str]]:
    """All nodes with GCUs, sorted by name, and a sentence for each thing that is not shown."""
    by_limits, unreadable = nodes_by_limits(state)
    by_claims = nodes_by_claims(
        Inventory.of(state.slices, state.rules),
        state.claims,
        state.pods,
        sees_slices=RESOURCE_SLICES not in state.missing,
    )
    cordoned = {str(each["metadata"]["name"]) for each in state.nodes if is_cordoned(each)}
    nodes = in_order(
        replace(node, unschedulable=node.name in cordoned) for node in (*by_claims, *by_limits)
    )
    return nodes, [*state.missing.values(), *unreadable]


def in_order(nodes: Iterable[NodeView]) -> list[NodeView]:
    """By name. A node that changes between both ways may be there twice."""
    return sorted(nodes, key=lambda each: (each.name, each.served_by.value))


def is_cordoned(node: Object) -> bool:
    """Whether the scheduler places nothing new on the node (`kubectl cordon`)."""
    return bool((node.get("spec") or {}).get("unschedulable"))
