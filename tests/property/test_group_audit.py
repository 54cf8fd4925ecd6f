"""What the audit of groups takes for a card that nobody uses."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import pytest

from dra_driver.model.claims.claim import Object
from tests.property.group_audit import Audit
from tests.unit.controller.nominate.test_group_nominator import REFUSED, Cluster

HELD = pytest.raises(AssertionError, match="holds cards")


@pytest.mark.parametrize(
    ("status", "found"),
    [
        pytest.param({"nominatedNodeName": "a"}, nullcontext(), id="its node is named"),
        pytest.param({}, HELD, id="none is named"),
        pytest.param({"nominatedNodeName": "a", "conditions": [REFUSED]}, HELD, id="refused"),
    ],
)
def test_a_card_is_free_that_is_promised_to_no_pod_alone(
    status: Object, found: AbstractContextManager[object]
) -> None:
    """Beside a group that was refused, a pod without a gate, and one that keeps it."""
    world = Cluster({"a": 1}, gang=1)
    audit = Audit(world.api.store, {"a": 1})
    audit.quorum["g"] = 1
    world.join("g", "refused", gate=False, status={"conditions": [REFUSED]})
    world.join("", "alone", gate=False, schedulingGroup=None, status=status)
    world.join("", "gated", schedulingGroup=None)
    audit.check(0.0)
    with found:
        audit.check(60.0)


@pytest.mark.parametrize(
    ("renamed", "found"),
    [
        pytest.param("a", pytest.raises(AssertionError, match="keeps names"), id="the same"),
        pytest.param("b", nullcontext(), id="another one, by a new decision"),
    ],
)
def test_a_name_that_nobody_can_use_is_taken_back(
    renamed: str, found: AbstractContextManager[object]
) -> None:
    world = Cluster({"a": 1, "b": 1}, gang=1)
    audit = Audit(world.api.store, {"a": 1, "b": 1})
    audit.quorum["g"] = 1
    refused = {"nominatedNodeName": "a", "conditions": [REFUSED]}
    world.join("g", "refused", gate=False, status=refused)
    audit.check(0.0)
    world.change("refused", nominatedNodeName=renamed)
    audit.check(40.0)
    with found:
        audit.check(60.0)
