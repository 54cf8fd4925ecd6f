"""The plugin NodeResourcesFit (1.37.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.allocator.nodes.node_set import NodeSet
from controller.cache.pod_requests import pod_requests
from controller.filter.plugins.plugin import Snapshot, Unfit

_WORDS = {"pods": "without a free place for a pod"}


class NodeResourcesFit:
    """Resources that a DeviceClass serves are not compared on nodes that have none of them: the
    pod gets a claim."""

    def unfit(self, pod: Mapping[str, Any], snapshot: Snapshot, nodes: NodeSet) -> list[Unfit]:
        resources = snapshot.left.resources
        return [
            Unfit(_WORDS.get(name) or f"without free {name}", lacking)
            for name, amount in pod_requests(pod)
            if (
                lacking := nodes
                & ~resources.nodes_with(name, amount, or_without=name in snapshot.mapped)
            )
        ]

    def looks_at_other_nodes(self, _pod: Mapping[str, Any], _snapshot: Snapshot) -> bool:
        return False
