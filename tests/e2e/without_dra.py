"""The driver on a cluster without DRA: device plugins, the extender, a second kube-scheduler."""

from __future__ import annotations

from typing import Any

from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from dra_driver.model.node_cards import NodeCard, parse_cards
from dra_driver.model.plugin_device import RESOURCES
from tests.cluster.images import SCHEDULER_IMAGE, scheduler_archive
from tests.e2e.installation import CARDS, Installation

SCHEDULER = "gcushare-scheduler"


class OldInstallation(Installation):
    """The release with a kube-scheduler of its own, under the vendor's name."""

    def load_scheduler(self) -> None:
        """Put kube-scheduler's image on all nodes."""
        self.cluster.load_image(scheduler_archive(self.cluster.programs))

    def values(self, **changed: Any) -> dict[str, Any]:
        return super().values(**{"extender": {"schedulerImage": SCHEDULER_IMAGE}, **changed})

    def published(self) -> bool:
        """Whether every node counts its cards, all free, and tells of them."""
        return all(
            self.allocatable(node, Mode.WHOLE) == CARDS[machine] == len(self.cards(node))
            and all(card.total for card in self.cards(node))
            and self.allocatable(node, Mode.DRS) == sum(card.total for card in self.cards(node))
            for node, machine in self.machines.items()
        )

    def allocatable(self, node: str, mode: Mode) -> int:
        """How many devices of the mode the kubelet counts."""
        found = self.cluster.get("node", node)["status"]["allocatable"]
        return int(found.get(RESOURCES[mode], 0))

    def cards(self, node: str) -> tuple[NodeCard, ...]:
        """What the node's agent tells."""
        annotations = self.cluster.get("node", node)["metadata"].get("annotations", {})
        return parse_cards(annotations[ANNOTATION_CARDS]) if ANNOTATION_CARDS in annotations else ()

    def held_by(self, pod: dict[str, Any]) -> dict[str, int]:
        """What the node tells that the pod has, by card."""
        return {
            str(card.address): hold.amount
            for card in self.cards(pod["spec"]["nodeName"])
            for hold in card.held
            if hold.pod == pod["metadata"]["uid"]
        }

    def _slices(self) -> str:
        return self.cluster.kubectl("get", "nodes", "--output=yaml")
