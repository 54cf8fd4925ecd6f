"""Two agents side by side, each with its own sockets, as a rolling upgrade has them."""

from __future__ import annotations

import pytest

from tests.kill.grants import Kind, wanted
from tests.kill.kubelet import Kubelet
from tests.kill.node import Node
from tests.kill.outside import await_published, check

pytestmark = pytest.mark.control_plane


@pytest.fixture
def agents(node: Node) -> tuple[Kubelet, Kubelet]:
    """The kubelet's view of the older and the newer one."""
    node.serve_others()
    older = node.kubelet
    node.next_pod()
    node.boot()
    return older, node.kubelet


@pytest.mark.parametrize("kind", Kind)
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
