"""What the page shows at one moment, and what changed since another one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PageSnapshot:
    """`nodes` are by ``servedBy/name``, in order, each as `inspect -o json` has it; one that has
    not changed is the same object as before. `sections` are the other fields of `inspect -o json`,
    and those of the page alone: waiting pods, groups, notices, and why the server is lost."""

    nodes: Mapping[str, dict[str, Any]]
    sections: Mapping[str, Any]

    def data(self) -> dict[str, Any]:
        """All of it."""
        return {"nodes": list(self.nodes.values()), **self.sections}


def changes(before: PageSnapshot, after: PageSnapshot) -> dict[str, Any]:
    """The nodes that are new or different, the keys of those that are gone, and the sections that
    are different; empty if nothing is."""
    found: dict[str, Any] = {
        name: section
        for name, section in after.sections.items()
        if section != before.sections.get(name)
    }
    changed = [node for key, node in after.nodes.items() if node is not before.nodes.get(key)]
    gone = [key for key in before.nodes if key not in after.nodes]
    return found | ({"nodes": changed} if changed else {}) | ({"gone": gone} if gone else {})
