"""Allocate, judged by the simulator's cards, the journal and what the container is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.config.card_rules import CardConfig
from dra_driver.device_plugin.allocator import Allocator
from dra_driver.model.card import Problem
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.node.claims.failures import TRIES
from tests.unit.device_plugin.plugin_world import PluginWorld, ids
from tests.unit.node.world import CARDS

ONE, TWO = map(str, CARDS[:2])
WHOLE, SHARED, DRS = Mode.WHOLE, Mode.SHARED, Mode.DRS


class Node:
    """A node with an agent, of which nothing is held, and that knows its cards' profiles."""

    def __init__(self, root: Path) -> None:
        self.world = PluginWorld(root)
        self.agent = self.world.start()
        self.world.learn(self.agent)

    @property
    def allocator(self) -> Allocator:
        return self.world.allocator(self.agent)

    def give(self, card: int, mode: Mode, *ordinals: int) -> str:
        """What Allocate says: empty, or its error."""
        try:
            self.allocator.allocate(mode, ids(card, mode, *ordinals))
        except GcuError as error:
            return str(error)
        return ""

    def held(self) -> list[str]:
        owners = [held.owner for held in self.agent.journal.snapshot().claims.values()]
        return sorted(str(owner) for owner in owners if isinstance(owner, ContainerAllocation))

    def profiles(self, card: str) -> list[str]:
        return [one.profile for one in self.world.tool.instances(card)]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_slices_of_one_card(node: Node) -> None:
    assert node.give(0, SHARED, 0, 1) == ""
    assert node.give(0, SHARED, 5) == ""
    assert node.held() == [f"{ONE}/shared/0,1", f"{ONE}/shared/5"]
    assert node.world.tool.changes() == []


def test_one_instance_of_the_size(node: Node) -> None:
    assert node.give(0, DRS, 1, 2, 3) == ""
    assert node.give(0, DRS, 0) == ""
    assert node.profiles(ONE) == ["3g.20gb", "1g.6gb"]


@pytest.mark.parametrize(
    ("takes_cdi_names", "names", "variables", "paths"),
    [
        (True, 2, {}, []),
        (False, 0, {"ENFLAME_VISIBLE_DEVICES": "0,1"}, ["/dev/gcu0", "/dev/gcu1"]),
    ],
    ids=["CDI names", "nodes"],
)
def test_what_a_container_is_told(
    node: Node,
    takes_cdi_names: bool,
    names: int,
    variables: dict[str, str],
    paths: list[str],
) -> None:
    node.world.takes_cdi_names = takes_cdi_names
    edits = node.allocator.allocate(WHOLE, [*ids(0, WHOLE, 0), *ids(1, WHOLE, 0)])
    assert len(edits.cdi_names) == names
    assert edits.variables == variables
    assert sorted(each.path for each in edits.nodes) == paths


def test_an_instance_is_named_to_the_container(node: Node) -> None:
    node.world.takes_cdi_names = False
    edits = node.allocator.allocate(DRS, ids(0, DRS, 0))
    [made] = node.world.tool.instances(ONE)
    assert edits.variables["TOPS_VISIBLE_DEVICES"] == f"DRS-{made.uuid}"


def test_the_cdi_name_is_one_of_the_grants_file(node: Node) -> None:
    [name] = node.allocator.allocate(DRS, ids(0, DRS, 0)).cdi_names
    [content] = node.world.files().values()
    assert name.startswith("gcu.enflame.com/claim=grant-")
    assert f'"{name.partition("=")[2]}"' in content


@pytest.mark.parametrize("mode", list(Mode))
def test_the_same_call_again(node: Node, mode: Mode) -> None:
    first = node.allocator.allocate(mode, ids(0, mode, 0))
    before = node.agent.journal.snapshot()
    assert node.allocator.allocate(mode, ids(0, mode, 0)) == first
    after = node.agent.journal.snapshot()
    assert len(node.held()) == 1
    assert before.claims != after.claims, "who looked before would not notice"
    assert len(node.profiles(ONE)) == (1 if mode is DRS else 0)
    restarted = node.world.start()
    assert restarted.held() == node.agent.held()
    assert node.world.allocator(restarted).allocate(mode, ids(0, mode, 0)) == first


@pytest.mark.parametrize(
    ("mode", "devices", "words"),
    [
        (DRS, ids(0, DRS, 0, 1), "no profile has size 2; the card's profiles are 1g.6gb,3g.20gb"),
        (SHARED, [*ids(0, SHARED, 0), *ids(1, SHARED, 0)], "from one card"),
        (DRS, [*ids(0, DRS, 0), *ids(1, DRS, 0)], "from one card"),
        (SHARED, ids(0, DRS, 0), "are not all devices of"),
        (SHARED, ids(0, SHARED, 6), "has 6 devices of enflame.com/shared-gcu"),
        (SHARED, ids(2, SHARED, 0), "1d:00.0"),
        (WHOLE, ["x"], "is not the ID"),
        (WHOLE, [], "no"),
    ],
    ids=[
        "a size without profile",
        "slices of two cards",
        "an instance of two cards",
        "devices of another resource",
        "a slice that is not there",
        "a card that is not there",
        "no ID",
        "no device",
    ],
)
def test_what_is_refused(node: Node, mode: Mode, devices: list[str], words: str) -> None:
    with pytest.raises(GcuError, match=words.replace(".", r"\.")):
        node.allocator.allocate(mode, devices)
    assert (node.held(), node.world.files(), node.profiles(ONE)) == ([], {}, [])
    assert node.world.tool.changes() == []


@pytest.mark.parametrize("first", list(Mode))
@pytest.mark.parametrize("second", list(Mode))
def test_a_card_is_in_one_mode_at_a_time(node: Node, first: Mode, second: Mode) -> None:
    assert node.give(0, first, 0) == ""
    if first is second:
        return
    error = node.give(0, second, 0)
    assert f"in mode {second}: the container with" in error
    assert f"holds it in mode {first}" in error


def test_two_kinds_for_one_pod_are_counted_each_on_a_card_of_its_own(node: Node) -> None:
    """No call tells of the pod; the chart's policy and the extender keep such a one away."""
    assert node.give(0, SHARED, 0) == ""
    assert "holds it in mode shared" in node.give(0, DRS, 0)
    assert node.give(1, DRS, 0) == ""
    assert node.held() == [f"{ONE}/shared/0", f"{TWO}/drs/0"]


def test_a_sick_card_is_given_to_nobody_but_who_has_it(node: Node) -> None:
    assert node.give(0, SHARED, 0) == ""
    problem = Problem(TAINT_UNHEALTHY, "health", "efsmi says that it is unhealthy")
    node.world.cards.problems[CARDS[0]] = (problem,)
    assert "must not be used: efsmi says" in node.give(0, SHARED, 1)
    assert node.give(0, SHARED, 0) == ""


def test_a_mode_that_the_rules_exclude(node: Node) -> None:
    node.world.offers[CARDS[0]] = CardConfig(modes=frozenset({WHOLE}))
    assert "is not offered as enflame.com/shared-gcu" in node.give(0, SHARED, 0)


def test_nothing_is_given_while_it_is_unknown_what_cards_are_to_offer(node: Node) -> None:
    node.world.are_cards_known = False
    assert "is not offered as enflame.com/shared-gcu" in node.give(0, SHARED, 0)


def test_a_node_that_serves_by_dra_gives_nothing_new(node: Node) -> None:
    assert node.give(0, SHARED, 0) == ""
    node.world.active = False
    assert "serves GCUs through DRA" in node.give(0, SHARED, 1)
    assert node.give(0, SHARED, 0) == ""


def test_another_slice_count_leaves_cards_in_use_alone(node: Node) -> None:
    assert node.give(0, SHARED, 5) == ""
    node.world.offers = {card: CardConfig(slice_count=2) for card in CARDS[:2]}
    assert node.give(0, SHARED, 0, 1, 2) == ""
    assert "has 2 devices" in node.give(1, SHARED, 2)
    assert node.give(1, SHARED, 0, 1) == ""


def handed_on(node: Node, first: tuple[int, ...], then: tuple[int, ...]) -> str:
    """The kubelet gives devices to one container, and some of them to another."""
    assert node.give(0, DRS, *first) == ""
    return node.give(0, DRS, *then)


def test_a_card_that_an_init_container_had(node: Node) -> None:
    assert node.give(0, WHOLE, 0) == ""
    node.allocator.allocate(WHOLE, [*ids(0, WHOLE, 0), *ids(1, WHOLE, 0)])
    assert node.held() == [ONE, f"{ONE},{TWO}"]


def test_an_instance_of_a_container_that_has_ended(node: Node) -> None:
    """Its devices are free for the kubelet, and we have not looked since."""
    assert handed_on(node, (0, 1, 2, 3, 4, 5), (0, 1, 2)) == ""
    assert node.profiles(ONE) == ["3g.20gb"]
    assert node.held() == [f"{ONE}/drs/0,1,2"]


def test_an_instance_of_an_init_container_of_another_size(node: Node) -> None:
    node.world.recorded = [frozenset(ids(0, DRS, 0, 1, 2))]
    assert "another size than an init container" in handed_on(node, (0, 1, 2), (0,))
    assert node.profiles(ONE) == ["3g.20gb"]


def test_nothing_is_destroyed_on_suspicion(node: Node) -> None:
    node.world.recorded = None
    assert "the kubelet does not answer" in handed_on(node, (0, 1, 2), (0,))
    assert node.profiles(ONE) == ["3g.20gb"]


def test_room_that_cannot_be_made_is_a_try_that_failed(node: Node) -> None:
    assert node.give(0, DRS, 0, 1, 2) == ""
    node.world.tool.set_fault("destroy-fails")
    for _ in range(TRIES):
        assert node.world.failures.tripped() == frozenset()
        assert "still there" in node.give(0, DRS, 0)
    assert node.world.failures.tripped() == {"drs-0000-0d-00-0"}
    node.world.tool.clear_faults()
    assert node.give(0, DRS, 0) == ""
    assert node.world.failures.tripped() == frozenset()


def test_what_fails_leaves_nothing(node: Node) -> None:
    node.world.tool.set_fault("create-fails", card=ONE)
    assert node.give(0, DRS, 0) != ""
    node.world.tool.clear_faults()
    assert (node.held(), node.world.files(), node.profiles(ONE)) == ([], {}, [])
    assert node.give(0, WHOLE, 0) == ""


def test_foreign_instances_are_left_alone(node: Node) -> None:
    node.world.tool.run("-i", "1", "--drs", "on")
    node.world.tool.run("-i", "1", "--drs", "--create-instance", "0")
    assert "no claim of this driver holds" in node.give(0, DRS, 0, 1, 2)
    assert node.profiles(ONE) == ["1g.6gb"]
