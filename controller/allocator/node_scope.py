"""On which nodes a slice or device can be used: one, all, or those that a selector allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.allocator.node_selector import selector_matches


@dataclass(frozen=True, slots=True)
class NodeScope:
    """One of three; where none was set, as by a form of later servers, no node is meant."""

    node: str = ""
    all_nodes: bool = False
    selector: Mapping[str, Any] | None = None

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> NodeScope:
        """From a slice's ``spec``, or from a device of a slice with perDeviceNodeSelection."""
        return cls(
            entry.get("nodeName") or "", bool(entry.get("allNodes")), entry.get("nodeSelector")
        )

    def includes(self, name: str, node: Mapping[str, Any] | None) -> bool:
        """Whether the node is meant; `node` is None while its object is not known."""
        if self.node:
            return self.node == name
        if self.all_nodes or self.selector is None:
            return self.all_nodes
        return node is not None and selector_matches(self.selector, node)
