"""What cards are offered as, while the Node's labels are known and before that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.config.card_rules import CardRules
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Unavailable
from dra_driver.model.pci import PciAddress
from tests.unit.agent.labelled_node import LabelledNode

CARD = PciAddress.parse("0000:0d:00.0")
FOUR_WHERE_A = {"nodeSelector": {"use": "a"}, "sliceCount": 4}


class Rig:
    """Offers of the node ``n1``; `changes` counts the calls that say so."""

    def __init__(self, *rules: Mapping[str, Any], **labels: str) -> None:
        self.api = LabelledNode(**labels)
        self.changes = 0
        parsed = CardRules.model_validate({"rules": rules})
        self.card_configs = CardConfigSource(
            cast("Api", self.api), "n1", parsed, on_change=self._changed
        )

    def known(self) -> bool:
        assert self.card_configs.known == (self.card_configs.problem is None)
        return self.card_configs.known

    def slices(self) -> int:
        return self.card_configs.of(CARD).slice_count

    def _changed(self) -> None:
        self.changes += 1


def test_without_a_rule_for_labels_no_request_is_made() -> None:
    rig = Rig({"nodes": ["n1"], "sliceCount": 2}, use="a")
    assert rig.known()
    assert rig.slices() == 2
    rig.card_configs.refresh()
    assert (rig.api.gets, rig.changes) == (0, 0)


def test_labels_decide_from_when_they_are_known() -> None:
    rig = Rig(FOUR_WHERE_A, use="a")
    assert not rig.known()
    assert "labels of Node n1" in str(rig.card_configs.problem)
    rig.card_configs.refresh()
    assert rig.known()
    assert (rig.slices(), rig.changes) == (4, 1)


@pytest.mark.parametrize(
    ("labels", "slices", "changes"),
    [
        pytest.param({"use": "a"}, 4, 0, id="the same"),
        pytest.param({"use": "b"}, 6, 1, id="another value"),
        pytest.param({}, 6, 1, id="no label at all"),
    ],
)
def test_a_refresh_tells_what_has_changed(
    labels: dict[str, str], slices: int, changes: int
) -> None:
    rig = Rig(FOUR_WHERE_A, use="a")
    rig.card_configs.refresh()
    rig.changes = 0
    rig.api.labels = labels
    rig.card_configs.refresh()
    assert (rig.slices(), rig.changes) == (slices, changes)


def test_a_node_without_labels_is_known_as_well() -> None:
    rig = Rig(FOUR_WHERE_A)
    rig.card_configs.refresh()
    assert rig.known()
    assert (rig.slices(), rig.changes) == (6, 1)


def test_what_was_known_holds_while_the_server_is_away() -> None:
    rig = Rig(FOUR_WHERE_A, use="a")
    rig.api.away = True
    with pytest.raises(Unavailable):
        rig.card_configs.refresh()
    assert not rig.known()
    rig.api.away = False
    rig.card_configs.refresh()
    rig.api.away = True
    with pytest.raises(Unavailable):
        rig.card_configs.refresh()
    assert rig.known()
    assert (rig.slices(), rig.changes) == (4, 1)
