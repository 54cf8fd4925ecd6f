"""What this node's cards are offered as: the rules, applied to the Node's labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dra_driver.config.card_rules import CardConfig, CardRules
from dra_driver.kube.api import Api
from dra_driver.kube.resources import NODES
from dra_driver.model.pci import PciAddress


class CardConfigSource:
    """The Node's labels are read again by `refresh`, and only where a rule asks for some: an idle
    agent makes no requests. `changed` is called when they are others than before."""

    def __init__(
        self, api: Api, node_name: str, rules: CardRules, *, changed: Callable[[], None]
    ) -> None:
        self._api = api
        self._node_name = node_name
        self._rules = rules
        self._changed = changed
        self._labels: Mapping[str, str] | None = None if rules.needs_labels else {}

    @property
    def known(self) -> bool:
        """Whether it can be said yet what a card is offered as."""
        return self._labels is not None

    @property
    def problem(self) -> str | None:
        """Why it cannot be said yet what a card is offered as, or None."""
        if self.known:
            return None
        return f"the labels of Node {self._node_name}, which card rules ask for, are not read yet"

    def refresh(self) -> None:
        """Read the labels; raises KubeError, and then those of before hold."""
        if not self._rules.needs_labels:
            return
        labels = self._api.get(NODES, self._node_name)["metadata"].get("labels") or {}
        if labels != self._labels:
            self._labels = labels
            self._changed()

    def of(self, card: PciAddress) -> CardConfig:
        """What the rules say of the card; while labels are unknown, as if there were none."""
        return self._rules.offer(self._node_name, self._labels or {}, card)
