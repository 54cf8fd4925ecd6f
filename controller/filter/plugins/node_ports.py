"""The plugin NodePorts (1.37.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.allocator.nodes.node_set import NodeSet
from controller.cache.host_ports import host_ports
from controller.filter.plugins.plugin import Snapshot, Unfit


class NodePorts:
    """A host port is had once of each protocol and address."""

    def unfit(self, pod: Mapping[str, Any], snapshot: Snapshot, nodes: NodeSet) -> list[Unfit]:
        return [
            Unfit(f"without free host port {port}", taken)
            for port in host_ports(pod)
            if (taken := nodes & snapshot.left.ports.nodes_without(port))
        ]

    def looks_at_other_nodes(self, _pod: Mapping[str, Any], _snapshot: Snapshot) -> bool:
        return False
