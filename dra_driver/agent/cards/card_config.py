"""The configuration of this node's cards: the card rules, applied to the Node's labels."""

from __future__ import annotations

from collections.abc import Mapping

from dra_driver.config.card_rules import CardConfig, CardRules
from dra_driver.kube.api import Api
from dra_driver.kube.resources import NODES
from dra_driver.model.pci import PciAddress
from dra_driver.util.hooks import OnChange


class CardConfigSource:
    """`refresh` reads the Node's labels, if any rule depends on labels: an idle agent makes no
    request. `on_change` is called when the labels have changed."""

    def __init__(self, api: Api, node_name: str, rules: CardRules, *, on_change: OnChange) -> None:
        self._api = api
        self._node_name = node_name
        self._rules = rules
        self._on_change = on_change
        self._labels: Mapping[str, str] | None = None if rules.needs_labels else {}

    @property
    def known(self) -> bool:
        """Whether the labels were read, or no rule depends on them."""
        return self._labels is not None

    @property
    def problem(self) -> str | None:
        """Why the configuration of the cards is not known yet; None if it is known."""
        if self.known:
            return None
        return f"the labels of Node {self._node_name}, which card rules ask for, are not read yet"

    def refresh(self) -> None:
        """Read the labels. Raises KubeError; then the former labels stay in effect."""
        if not self._rules.needs_labels:
            return
        labels = self._api.get(NODES, self._node_name)["metadata"].get("labels") or {}
        if labels != self._labels:
            self._labels = labels
            self._on_change()

    def of(self, card: PciAddress) -> CardConfig:
        """The card's configuration; while the labels are unknown, that of a Node without labels."""
        return self._rules.offer(self._node_name, self._labels or {}, card)
