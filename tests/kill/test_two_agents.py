"""Two agents side by side, each with its own sockets, as a rolling upgrade has them."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.cluster.waiting import wait_until
from tests.kill.grants import Kind, wanted
from tests.kill.kubelet import Kubelet
from tests.kill.node import Node
from tests.kill.outside import await_published, check

LEFT = "another agent has ended: sending the devices' health again"

pytestmark = pytest.mark.control_plane


@pytest.fixture
def agents(node: Node) -> tuple[Kubelet, Kubelet]:
    """The kubelet's view of the older and the newer one."""
    node.serve_others()
    older = node.kubelet
    node.next_pod()
    node.boot()
    return older, node.kubelet


@pytest.mark.parametrize(
    "kind",
    [
        Kind.DRS_BESIDE,
        pytest.param(Kind.WHOLE, marks=pytest.mark.matrix),
        pytest.param(Kind.SHARED, marks=pytest.mark.matrix),
        pytest.param(Kind.DRS, marks=pytest.mark.matrix),
    ],
)
def test_a_claim_is_handed_over_and_back(
    node: Node, agents: tuple[Kubelet, Kubelet], kind: Kind
) -> None:
    for prepares, ends in (agents, reversed(agents)):
        ref = node.add(wanted(kind))
        assert prepares.prepare(ref) == ""
        assert ends.prepare(ref) == ""
        check(node)
        other = node.claims.add(f"{ref.name}-other", wanted(kind))
        assert f"claim {ref}" in ends.prepare(other)
        assert ends.unprepare(ref) == ""
        assert prepares.unprepare(ref) == ""
        del node.held[ref]
        check(node)
    await_published(node)


def test_the_older_one_leaves(node: Node, agents: tuple[Kubelet, Kubelet]) -> None:
    _, newer = agents
    before = {each["metadata"]["uid"] for each in node.slices()}
    node.retire()
    plugins = node.root / "kubelet" / "plugins"
    assert [path.name for path in plugins.rglob("*.sock")] == [node.sockets.service.name]
    ref = node.add(wanted(Kind.DRS))
    assert newer.prepare(ref) == ""
    check(node)
    await_published(node)
    assert {each["metadata"]["uid"] for each in node.slices()} == before


def slice_counts(node: Node) -> Counter[str]:
    """Into how many slices the cards are cut, as published."""
    devices = [device for each in node.slices() for device in each["spec"]["devices"]]
    return Counter(
        device["capacity"]["slices"]["value"]
        for device in devices
        if device["attributes"]["type"]["string"] == "shared"
    )


@pytest.mark.parametrize(
    "end",
    [pytest.param(signal.SIGTERM, marks=pytest.mark.matrix), signal.SIGKILL],
    ids=lambda end: end.name,
)
def test_one_publishes_at_a_time(node: Node, tmp_path: Path, end: signal.Signals) -> None:
    """The newer one offers the cards otherwise, which is not seen before it is alone; then at
    once, and no slice is missing meanwhile. A card that is held keeps its form."""
    rules = tmp_path / "rules.json"
    rules.write_text('{"sliceCount": 4}')
    node.serve_others()
    await_published(node)
    older = node.agent
    node.next_pod()
    node.boot(flags={"card-rules": rules})
    newer = node.kubelet
    node.wipe_slices()
    await_published(node)
    assert slice_counts(node) == {"6": 5}, "the older one restored what was deleted"
    ref = node.add(wanted(Kind.WHOLE))
    assert newer.prepare(ref) == "", "who stands by serves all the same"
    uids = {each["metadata"]["uid"] for each in node.slices()}
    with newer.health() as lists:
        assert next(lists).devices
        older.end(end)
        wait_until(lambda: LEFT in node.log(), 60.0, "told again", seen=node.log)
        assert next(lists).devices
    wait_until(lambda: slice_counts(node)["4"] > 0, 60.0, "the newer one's slices", seen=node.log)
    # The foreign card's alone is free: all others are held.
    assert slice_counts(node) == {"4": 1, "6": 4}
    assert {each["metadata"]["uid"] for each in node.slices()} == uids, "replaced in place"
    check(node)
