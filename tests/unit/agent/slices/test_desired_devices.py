"""Which taints the devices carry: what ails the card, and that it cannot be looked at."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.context import AgentContext
from dra_driver.agent.slices.desired_devices import DesiredDevices
from dra_driver.agent.slices.device_layout import Devices, by_name, slice_count
from dra_driver.config.card_rules import CardRules, load_card_rules
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.kube.api import Api
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_CHANGING
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, record
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from tests.unit.agent.cards.watched import Watched
from tests.unit.node.claims.counted import ref
from tests.unit.node.world import hold

FIRST, SECOND = "0000:0d:00.0", "0000:0e:00.0"
UNHEALTHY = "gcu.enflame.com/unhealthy"


class Offering(Watched):
    """Two cards; `publish` lets what is offered stand on the server."""

    def __init__(self, root: Path, **settings: Any) -> None:
        super().__init__(root / "machine", cooldown=0, error_limit=settings.get("limit"))
        self.published: Devices = []
        self.ledger = Ledger()
        self.card_configs = CardConfigSource(
            cast("Api", None),
            "n1",
            settings.get("rules", load_card_rules(None)),
            on_change=lambda: None,
        )
        self.tables = ProfileTables(root)
        self.context = SimpleNamespace(
            cards=self.cards,
            card_configs=self.card_configs,
            tables=self.tables,
            journal=SimpleNamespace(snapshot=lambda: self.ledger),
            failures=DeviceCircuitBreaker(),
        )
        self.devices = DesiredDevices(
            cast("AgentContext", self.context),
            select=lambda cards: cards,
            in_use=lambda: frozenset(
                card for held in self.ledger.claims.values() for card in held.cards
            ),
            evict=settings.get("evict", ()),
        )

    def taints(self) -> dict[str, set[tuple[str, str]]]:
        """By card, value and effect of the taint ``unhealthy`` on each of its devices."""
        offered = self.devices(self.published)
        assert offered is not None
        found: dict[str, set[tuple[str, str]]] = {}
        for card, _, each in by_name(offered):
            taints = {(t["value"], t["effect"]) for t in each["taints"] if t["key"] == UNHEALTHY}
            assert found.setdefault(str(card), taints) == taints
        return found

    def fail(self, looks: int = 3) -> None:
        self.machine.set_fault("efsmi-exit")
        for _ in range(looks):
            self.cards.refresh()

    def publish(self) -> None:
        self.published = self.devices(self.published) or []

    def changing(self) -> set[str]:
        """The cards whose published devices all have that taint; no device has it alone."""
        found: dict[str, bool] = {}
        for card, _, each in by_name(self.published):
            changing = any(taint["key"] == TAINT_CHANGING for taint in each["taints"])
            assert found.setdefault(str(card), changing) is changing
        return {card for card, changing in found.items() if changing}


@pytest.mark.parametrize(
    ("value", "cause", "well"),
    [
        ("lost", {"lost": True}, {"lost": False}),
        ("health", {"health": False}, {"health": True}),
        ("rma", {"rma": True}, {"rma": False}),
        ("errors", {"errors": {"SIP Error": 11}}, {"errors": {"SIP Error": 0}}),
        ("pending", {"eccPending": "Disable"}, {"eccPending": "Enable"}),
    ],
    ids=["lost", "health", "rma", "errors", "pending"],
)
@pytest.mark.parametrize("evicts", [False, True], ids=["by default", "evicting"])
def test_a_cause_taints_its_card_until_it_is_gone(
    tmp_path: Path, value: str, cause: dict[str, Any], well: dict[str, Any], evicts: bool
) -> None:
    offering = Offering(tmp_path, limit=10, evict={value} if evicts else ())
    offering.cards.refresh()
    assert offering.taints() == {FIRST: set(), SECOND: set()}
    offering.machine.set_card(FIRST, **cause)
    offering.cards.refresh()
    effect = "NoExecute" if evicts else "NoSchedule"
    assert offering.taints() == {FIRST: {(value, effect)}, SECOND: set()}
    offering.machine.set_card(FIRST, **well)
    offering.cards.refresh()
    assert offering.taints() == {FIRST: set(), SECOND: set()}


@pytest.mark.parametrize(("limit", "tainted"), [(None, False), (11, False), (10, True)])
def test_error_records_taint_above_the_limit_alone(
    tmp_path: Path, limit: int | None, tainted: bool
) -> None:
    offering = Offering(tmp_path, limit=limit)
    offering.machine.set_card(FIRST, errors={"SIP Error": 11})
    offering.cards.refresh()
    wanted = {("errors", "NoSchedule")} if tainted else set()
    assert offering.taints() == {FIRST: wanted, SECOND: set()}


def test_other_causes_than_those_named_do_not_evict(tmp_path: Path) -> None:
    offering = Offering(tmp_path, evict={"rma"})
    offering.machine.set_card(FIRST, rma=True, health=False)
    offering.cards.refresh()
    assert offering.taints()[FIRST] == {("rma", "NoExecute"), ("health", "NoSchedule")}


def test_while_the_tool_fails_all_cards_are_tainted(tmp_path: Path) -> None:
    offering = Offering(tmp_path, evict={"efsmi"})
    offering.machine.set_card(SECOND, rma=True)
    offering.cards.refresh()
    offering.fail()
    failing = ("efsmi", "NoExecute")
    assert offering.taints() == {FIRST: {failing}, SECOND: {failing, ("rma", "NoSchedule")}}
    offering.machine.clear_faults()
    offering.cards.refresh()
    assert offering.taints() == {FIRST: set(), SECOND: {("rma", "NoSchedule")}}


def test_an_agent_that_starts_while_the_tool_fails_taints_what_stands_there(
    tmp_path: Path,
) -> None:
    earlier = Offering(tmp_path)
    earlier.cards.refresh()
    earlier.publish()
    offering = Offering(tmp_path)
    offering.published = earlier.published
    offering.fail(looks=2)
    assert offering.devices(offering.published) is None
    offering.fail(looks=1)
    failing = {("efsmi", "NoSchedule")}
    for _ in range(2):
        assert offering.taints() == {FIRST: failing, SECOND: failing}
        offering.publish()
    offering.machine.clear_faults()
    offering.cards.refresh()
    assert offering.taints() == {FIRST: set(), SECOND: set()}


def test_without_cards_and_without_slices_nothing_is_published(tmp_path: Path) -> None:
    """An empty pool would say that the node has no cards."""
    offering = Offering(tmp_path)
    offering.fail()
    assert offering.devices(offering.published) is None


def after_another_rule(root: Path, rules: CardRules) -> Offering:
    """A claim has two slices of the first card, which was cut into four, and no slice is on the
    API server: the kubelet has deleted them."""
    offering = Offering(root, rules=rules)
    slices = hold(0, mode=Mode.SHARED, consumed={"slices": "2"}, total=4)
    assert slices.card == PciAddress.parse(FIRST)
    offering.ledger = Ledger().apply(record(ClaimStep.PREPARE_COMPLETED, ref("a"), (slices,)))
    offering.cards.refresh()
    return offering


OTHER_RULES = [CardRules(slice_count=6), CardRules(slice_count=4, modes=frozenset({Mode.WHOLE}))]


@pytest.mark.parametrize("rules", OTHER_RULES, ids=["cut into more", "no slices"])
def test_a_card_in_use_gets_its_layout_back_when_the_kubelet_has_deleted_the_slices(
    tmp_path: Path, rules: CardRules
) -> None:
    """Otherwise an allocator would count the slices in use as slices of another size, or give the
    whole card away."""
    offering = after_another_rule(tmp_path, rules)
    first, second = map(PciAddress.parse, (FIRST, SECOND))
    for _ in range(3):
        offering.publish()
        assert slice_count(offering.published, first) == 4
        assert offering.changing() == {FIRST}
    by_rule = 6 if rules.slice_count == 6 else None
    assert slice_count(offering.published, second) == by_rule
    offering.ledger = Ledger()
    offering.publish()
    assert slice_count(offering.published, first) == by_rule
    assert offering.changing() == set()


def test_a_card_in_use_by_the_present_rule_takes_new_claims(tmp_path: Path) -> None:
    offering = after_another_rule(tmp_path, CardRules(slice_count=4))
    offering.publish()
    assert offering.changing() == set()
