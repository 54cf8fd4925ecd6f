"""What `kubectl gcu doctor` says about a node whose cards another device plugin gives to pods."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from tests.generated_docs import CHECKOUT
from tests.unit.controller.allocator.build import UNHEALTHY, allocated, device, pool
from tests.unit.kubectl_gcu.checks.installations import (
    found_in,
    node,
    ours,
    pod,
    with_pods,
    with_state,
)

FOREIGN = {"key": "gcu.enflame.com/foreign", "effect": "NoSchedule"}
MIGRATES = (
    "other-plugin: node a: another device plugin offers enflame.com/shared-gcu of the same cards, "
    "so its cards have the taint foreign, and no claim gets them. This is normal during a "
    "migration: docs/user/migrating-from-gcushare.md says how to end it."
)
UNINSTALL = "of the same cards. Uninstall it: two programs that do not know of each other give one"


def slices(*devices: Object) -> tuple[Object, ...]:
    return tuple(pool("a", list(devices)))


def test_a_node_during_a_migration_has_one_line() -> None:
    foreign = (device("whole", bus, taints=[FOREIGN]) for bus in (1, 2))
    found = with_state(slices=slices(*foreign), nodes=(node("a", shared_gcu="6"), node("b")))
    assert found_in(found) == [MIGRATES]


def test_what_else_is_wrong_with_such_cards_is_reported() -> None:
    """A claim on a card that pods of the plugin get, too, is what nobody may overlook."""
    held = device("whole", 1, taints=[FOREIGN])
    lost = device("whole", 2, taints=[FOREIGN, UNHEALTHY])
    found = with_state(
        slices=slices(held, lost),
        nodes=(node("a", shared_gcu="6"), node("b")),
        claims=(ours(allocated("one", "a", "whole-0000-01-00-0"), "user"),),
    )
    of_held, of_lost, of_node = found_in(with_pods(pod("user"), of=found))
    assert of_held.startswith(
        "card-problem: node a, card 0000:01:00.0: foreign; held by default/one. docs/user/sharing"
    )
    assert of_lost.startswith(
        "card-problem: node a, card 0000:02:00.0: unhealthy: lost. docs/user/health.md#what-to-do"
    )
    assert of_node == MIGRATES


@pytest.mark.parametrize(
    "offered",
    [
        pytest.param({"shared_gcu": "6"}, id="the agent has not seen it yet"),
        pytest.param({"gcu_memory": "6"}, id="nor a resource with another name"),
    ],
)
def test_cards_that_claims_get_as_well(offered: dict[str, str]) -> None:
    a = node("a", info=None, **offered)
    [line] = found_in(with_state(slices=slices(device("whole", 1)), nodes=(a, node("b"))))
    assert UNINSTALL in line


def test_partitions_of_others_without_a_plugin_are_named_card_by_card() -> None:
    found = with_state(slices=slices(device("whole", 1, taints=[FOREIGN])))
    [line] = found_in(found)
    assert line == (
        "card-problem: node a, card 0000:01:00.0: foreign. "
        "docs/user/sharing.md#cards-that-others-use says what to do."
    )
    page = (CHECKOUT / "docs/user/sharing.md").read_text()
    assert "## Cards that others use" in page.splitlines()
