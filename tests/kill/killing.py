"""Plays one cell of the matrix on a node, and judges what is left."""

from __future__ import annotations

import time

from dra_driver.model.claims.claim import ClaimRef
from tests.kill.catalog import BY_NAME
from tests.kill.cells import Cell, Next, Outcome, Result
from tests.kill.grants import Kind, wanted
from tests.kill.moments import Moment, moments
from tests.kill.node import Node
from tests.kill.operations import Operation
from tests.kill.outside import await_published, check, is_whole, shown
from tests.kill.starter import AgentProcess

_DEATH_SECONDS = 10.0
_IDLE_SECONDS = 2.0
_QUIET_SECONDS = 1.0


def record(node: Node, operation: Operation, kind: Kind) -> list[Moment]:
    """The moments of the operation when nobody is killed, of the agent that is to be killed. One
    that serves beside a new one passes moments, too, but has no order to die at them."""
    ref = _begin(node, operation, kind)
    # The server shows a write before the agent has passed the moment after it.
    before = {agent: len(_settled(agent, operation)) for agent in node.agents[-1:]}
    operation.go(node, ref, None)
    passed = moments(_settled(node.agent, operation)[before.get(node.agent, 0) :])
    _rest(node, operation)
    _end(node, operation, ref)
    return passed


def kill(node: Node, cell: Cell) -> Result:
    """Kill the agent there, or at rest where it does not come to that moment, and see what becomes
    of it. Raises AssertionError."""
    operation = BY_NAME[cell.operation]
    ref = _begin(node, operation, cell.kind)
    others = _others(node, ref)
    operation.go(node, ref, cell.moment)
    _await_death(node)
    node.agent.end()
    reached = node.agent.trace()[-1:] == [cell.moment.line]
    successor = _meanwhile(node, cell, ref)
    _rest(node, operation)
    assert operation.ends_others or _others(node, ref) == others, "other pods lost what they had"
    has_all = is_whole(node, ref)
    assert has_all or not shown(node, ref), "a CDI file tells of an instance that is not there"
    assert has_all or not operation.answered, "what was answered is not kept"
    if cell.next is Next.RETRY and not operation.ends:
        assert node.prepare(ref) == ""
        check(node)
    if successor is not None:
        node.succeed(ref, successor, refused=has_all)
        check(node)
        _give_back(node, successor)
    _end(node, operation, ref)
    return Result(Outcome.KEPT if has_all else Outcome.NOTHING, reached)


def _begin(node: Node, operation: Operation, kind: Kind) -> ClaimRef:
    if operation.fresh:
        node.start_over()
    elif not node.held:
        node.start_over()
        node.serve_others()
    return operation.ready(node, kind)


def _others(node: Node, ref: ClaimRef) -> dict[str, str]:
    """The CDI files of the other claims, which name their instances."""
    theirs = {node.file_of(each).name for each in node.held if each != ref}
    return {name: text for name, text in node.files().items() if name in theirs}


def _settled(agent: AgentProcess, operation: Operation) -> list[str]:
    """Its trace, once the threads beside have done their part, too."""
    trace = agent.trace()
    while True:
        time.sleep(_QUIET_SECONDS)
        before, trace = trace, agent.trace()
        if trace == before or operation.restless:
            return trace


def _await_death(node: Node) -> None:
    """The agent may be on its way to the moment at which it dies; not when it does nothing."""
    deadline = time.monotonic() + _DEATH_SECONDS
    trace: list[str] = []
    while node.agent.trace() != trace and time.monotonic() < deadline:
        trace = node.agent.trace()
        if node.agent.ended(_IDLE_SECONDS):
            return


def _meanwhile(node: Node, cell: Cell, ref: ClaimRef) -> ClaimRef | None:
    """What happens while no agent runs; gives the claim that is to have the same now."""
    if cell.next is Next.RETRY:
        return None
    node.forget(ref)
    if cell.next is Next.GONE:
        return None
    return node.successor(ref, wanted(cell.kind))


def _rest(node: Node, operation: Operation) -> None:
    """One agent serves, one that does not look at the node by itself."""
    if operation.restless:
        node.down()
    node.up()
    node.retire()
    if operation.fresh:
        # It examines a card, whose DRS mode is on meanwhile; then it publishes.
        await_published(node)


def _end(node: Node, operation: Operation, ref: ClaimRef) -> None:
    if ref in node.held:
        _give_back(node, ref)
    check(node)
    await_published(node)
    if operation.fresh:
        node.start_over()


def _give_back(node: Node, ref: ClaimRef) -> None:
    assert node.unprepare(ref) == ""
    del node.held[ref]
    node.forget(ref)
    check(node)
