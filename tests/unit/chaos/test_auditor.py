"""The auditor of `make soak-chaos` finds each violation that is planted, and nothing in a sound
cluster."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER, pool_name
from dra_driver.model.pci import PciAddress
from tests.chaos.auditor import PATIENCE, Auditor, Kind
from tests.chaos.look import Card, Container, Look
from tests.chaos.workload import NEED

Object = dict[str, Any]

NODE = "gcu-node-1"
POOL = pool_name(NODE)
CARDS = [PciAddress.parse(f"0000:0{number}:00.0") for number in (1, 2)]
CAPACITY = {Mode.SHARED: "slices", Mode.DRS: "size"}


@dataclass
class Scene:
    """A cluster of one node with two cards, of minors 0 and 1, in which each pod has one claim."""

    pods: dict[str, Object] = field(default_factory=dict)
    claims: dict[str, Object] = field(default_factory=dict)
    containers: dict[str, Container] = field(default_factory=dict)
    cards: list[Card] = field(
        default_factory=lambda: [Card(minor, divided=False, instances={}) for minor in (0, 1)]
    )
    owned: set[str] = field(default_factory=set)
    said: str = ""

    def run(self, name: str, mode: Mode, amount: int, card: int = 0) -> None:
        """A pod whose container has that of a card, with an instance where it is to have one."""
        self.claims[f"claim-{name}"] = _claim(name, mode, amount, CARDS[card])
        self.pods[name] = _pod(name, ready=True)
        instance = ""
        if mode is Mode.DRS:
            instance = f"instance-{name}"
            sizes = {**self.cards[card].instances, instance: amount}
            self.cards[card] = replace(self.cards[card], divided=True, instances=sizes)
            self.owned.add(instance)
        minors = frozenset({card})
        self.containers[name] = Container(name, name, "main", minors, minors, instance)

    def wait(self, name: str, *, node: str = "", need: str = "") -> None:
        """A pod that is not ready."""
        pod = _pod(name, ready=False)
        if not node:
            del pod["spec"]["nodeName"]
        if need:
            pod["metadata"]["annotations"] = {NEED: need}
        self.pods[name] = pod

    def delete_by_force(self, name: str) -> None:
        """Its pod and claim are gone from the API server, its container runs on."""
        del self.pods[name], self.claims[f"claim-{name}"]

    def sees(self, name: str, **changed: Any) -> None:
        """What a container really sees."""
        self.containers[name] = replace(self.containers[name], **changed)

    def look(self, at: float) -> Look:
        return Look(
            at=at,
            pods=dict(self.pods),
            claims=dict(self.claims),
            containers=dict(self.containers),
            cards={(POOL, address): self.cards[n] for n, address in enumerate(CARDS)},
            owned={POOL: frozenset(self.owned)},
        )


class Audit:
    """Looks at a scene, as time goes on."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.auditor = Auditor(lambda _: self.scene.said)
        self._now = 0.0

    def look(self, *, later: float = 1.0) -> None:
        self._now += later
        found = self.scene.look(self._now)
        self.auditor.judge(found, found)

    def found(self) -> list[Kind]:
        return [each.kind for each in self.auditor.violations]


@pytest.fixture
def audit() -> Audit:
    return Audit()


def _claim(name: str, mode: Mode, amount: int, card: PciAddress) -> Object:
    result: Object = {
        "request": "gcu",
        "driver": DRIVER,
        "pool": POOL,
        "device": f"{mode}-{card.slug}",
    }
    if mode in CAPACITY:
        result["consumedCapacity"] = {CAPACITY[mode]: str(amount)}
    return {
        "metadata": {"namespace": "chaos", "name": name, "uid": f"claim-{name}"},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
        },
    }


def _pod(name: str, *, ready: bool) -> Object:
    return {
        "metadata": {"namespace": "chaos", "name": name, "uid": name},
        "spec": {
            "nodeName": NODE,
            "resourceClaims": [{"name": "gcu", "resourceClaimName": name}],
            "containers": [{"name": "main", "resources": {"claims": [{"name": "gcu"}]}}],
        },
        "status": {
            "phase": "Running" if ready else "Pending",
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def test_a_sound_cluster_violates_nothing(audit: Audit) -> None:
    audit.scene.run("two", Mode.SHARED, 2)
    audit.scene.run("four", Mode.SHARED, 4)
    audit.scene.run("small", Mode.DRS, 1, card=1)
    audit.scene.run("large", Mode.DRS, 3, card=1)
    audit.scene.wait("waits", need="whole 1")
    audit.scene.said = "no card is free"
    audit.look()
    audit.look(later=2 * PATIENCE)
    audit.auditor.judge_rest(audit.scene.look(0.0))
    assert not audit.auditor.violations
    assert set(audit.auditor.counts().values()) == {0}


@pytest.mark.parametrize(
    ("held", "kind"),
    [
        ([(Mode.WHOLE, 0), (Mode.WHOLE, 0)], Kind.TWO_HOLDERS),
        ([(Mode.SHARED, 4), (Mode.SHARED, 3)], Kind.TWO_HOLDERS),
        ([(Mode.DRS, 3), (Mode.DRS, 3), (Mode.DRS, 1)], Kind.TWO_HOLDERS),
        ([(Mode.WHOLE, 0), (Mode.SHARED, 1)], Kind.MIXED_MODES),
        ([(Mode.SHARED, 1), (Mode.DRS, 1)], Kind.MIXED_MODES),
    ],
)
def test_what_claims_must_not_have_together(
    audit: Audit, held: list[tuple[Mode, int]], kind: Kind
) -> None:
    for number, (mode, amount) in enumerate(held):
        name = f"p{number}"
        audit.scene.claims[f"claim-{name}"] = _claim(name, mode, amount, CARDS[0])
    audit.look()
    audit.look()
    assert audit.found() == [kind]


def test_a_container_of_a_deleted_pod_holds_its_share_while_it_runs(audit: Audit) -> None:
    audit.scene.run("deleted", Mode.WHOLE, 0)
    audit.look()
    audit.scene.delete_by_force("deleted")
    audit.look()
    assert not audit.found()
    audit.scene.run("next", Mode.WHOLE, 0)
    audit.look()
    assert audit.found() == [Kind.TWO_HOLDERS]


def test_a_container_that_ends_between_two_looks_holds_nothing(audit: Audit) -> None:
    audit.scene.run("deleted", Mode.WHOLE, 0)
    audit.look()
    before = audit.scene.look(1.5)
    audit.scene.delete_by_force("deleted")
    del audit.scene.containers["deleted"]
    audit.scene.run("next", Mode.WHOLE, 0)
    audit.auditor.judge(before, audit.scene.look(2.0))
    assert not audit.found()


def test_a_container_that_begins_between_two_looks_may_have_been_read_late(audit: Audit) -> None:
    audit.scene.run("first", Mode.WHOLE, 0)
    before = audit.scene.look(1.0)
    audit.scene.delete_by_force("first")
    audit.scene.run("next", Mode.WHOLE, 0)
    audit.auditor.judge(before, audit.scene.look(2.0))
    assert not audit.found()


def test_a_card_in_drs_mode_under_a_container_that_has_it_whole(audit: Audit) -> None:
    audit.scene.run("whole", Mode.WHOLE, 0)
    audit.scene.cards[0] = replace(audit.scene.cards[0], divided=True)
    audit.look()
    assert audit.found() == [Kind.MIXED_MODES]


@pytest.mark.parametrize(
    "wrong",
    [
        {"minors": frozenset({0, 1})},
        {"minors": frozenset()},
        {"visible": frozenset({0})},
        {"minors": frozenset({0}), "visible": frozenset({0})},
        {"instance": ""},
        {"instance": "instance-other"},
    ],
)
def test_a_container_with_other_devices(audit: Audit, wrong: dict[str, Any]) -> None:
    audit.scene.run("one", Mode.DRS, 3, card=1)
    audit.scene.run("other", Mode.DRS, 1, card=1)
    audit.look()
    assert not audit.found()
    audit.scene.sees("one", **wrong)
    audit.look()
    assert audit.found() == [Kind.OTHER_DEVICES]


def test_an_instance_that_no_claim_has(audit: Audit) -> None:
    audit.scene.run("one", Mode.SHARED, 1)
    audit.scene.sees("one", instance="instance-of-nobody")
    audit.look()
    assert audit.found() == [Kind.OTHER_DEVICES]


def test_an_instance_without_owner(audit: Audit) -> None:
    """An agent that is killed leaves one until it is back."""
    audit.scene.run("one", Mode.DRS, 3)
    audit.scene.owned.clear()
    audit.look()
    audit.look(later=PATIENCE)
    assert not audit.found()
    audit.look()
    assert audit.found() == [Kind.NO_OWNER]


def test_an_instance_that_has_an_owner_again(audit: Audit) -> None:
    audit.scene.run("one", Mode.DRS, 3)
    for owned in (set(), {"instance-one"}, set()):
        audit.scene.owned = owned
        audit.look(later=PATIENCE)
    assert not audit.found()


def test_a_journal_that_is_being_written_tells_nothing(audit: Audit) -> None:
    audit.scene.run("one", Mode.DRS, 3)
    unknown = replace(audit.scene.look(1.0), owned={POOL: None})
    for seconds in (0.0, PATIENCE, 2 * PATIENCE):
        audit.auditor.judge(replace(unknown, at=seconds), replace(unknown, at=seconds))
    assert not audit.found()


@pytest.mark.parametrize("node", ["", NODE])
def test_a_pod_stuck_without_a_reason(audit: Audit, node: str) -> None:
    audit.scene.wait("stuck", node=node)
    audit.look()
    audit.look(later=PATIENCE)
    assert not audit.found()
    audit.look()
    assert audit.found() == [Kind.STUCK]


def test_a_pod_that_does_not_end(audit: Audit) -> None:
    audit.scene.run("ending", Mode.SHARED, 1)
    audit.scene.pods["ending"]["metadata"]["deletionTimestamp"] = "2026-11-28T00:00:00Z"
    audit.look()
    audit.look(later=PATIENCE + 1)
    assert audit.found() == [Kind.STUCK]


def test_a_pod_that_goes_on_is_not_stuck(audit: Audit) -> None:
    audit.scene.wait("late")
    audit.look()
    audit.look(later=PATIENCE)
    audit.scene.wait("late", node=NODE)
    audit.look(later=PATIENCE)
    assert not audit.found()


def test_a_pod_that_waits_twice_is_not_stuck(audit: Audit) -> None:
    for ready in (False, True, False):
        audit.scene.pods["again"] = _pod("again", ready=ready)
        audit.look(later=PATIENCE)
    assert not audit.found()


@pytest.mark.parametrize(
    ("need", "held", "is_free"),
    [
        ("whole 1", (Mode.WHOLE, 0), True),
        ("shared 2", (Mode.SHARED, 6), True),
        ("drs 6", (Mode.DRS, 6), True),
        ("shared 2", None, False),
    ],
)
def test_a_pod_that_waits_at_rest(
    audit: Audit, need: str, held: tuple[Mode, int] | None, *, is_free: bool
) -> None:
    """The second card is held whole, unless the first one is the only one that is held."""
    if held:
        audit.scene.run("holder", *held)
    else:
        audit.scene.run("five", Mode.SHARED, 5)
        audit.scene.run("whole", Mode.WHOLE, 0, card=1)
    audit.scene.wait("waits", need=need)
    audit.scene.said = "no card has room"
    assert bool(audit.auditor.unsettled(audit.scene.look(0.0))) is is_free
    audit.auditor.judge_rest(audit.scene.look(0.0))
    assert audit.found() == ([Kind.FREE] if is_free else [])


def test_a_bound_pod_at_rest_has_to_run_whatever_is_said(audit: Audit) -> None:
    audit.scene.wait("late", node=NODE)
    audit.scene.said = "FailedPrepareDynamicResources"
    audit.auditor.judge_rest(audit.scene.look(0.0))
    assert audit.found() == [Kind.STUCK]


def test_a_program_that_ended_by_itself_is_counted_once(audit: Audit) -> None:
    for _ in range(2):
        audit.auditor.add_ended("container-1", "the agent: Error, code 1")
    assert audit.found() == [Kind.ENDED]
    assert audit.auditor.counts()[Kind.ENDED] == 1
