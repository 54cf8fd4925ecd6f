"""What an agent does while it is killed.

Each operation brings a node to where it begins, and then has the agent do it: until it is over,
or the agent is dead.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from dra_driver.model.claim import ClaimRef
from dra_driver.model.effects import Point
from dra_driver.model.mode import Mode
from tests.cluster.waiting import wait_until
from tests.kill.grants import TAKEN, Kind, wanted
from tests.kill.kubelet import Kubelet, NoAnswer
from tests.kill.moments import Moment, give_order
from tests.kill.node import Node
from tests.kill.outside import await_published, instance_of, is_published, is_whole

_SECONDS = 60.0
_OFTEN = 0.5  # seconds between two looks at the node

Order = Moment | None


@dataclass(frozen=True, slots=True)
class Operation:
    """`ready(node, kind)` gives the claim it is about; `go(node, ref, order)` does it, to be
    killed at `order`.

    `answered`: the kubelet was told before that the claim is prepared, so it must stay so.
    `ends_others`: no other pod runs on with what it had. `fresh`: on a node on which no agent has
    ever run.
    """

    name: str
    ready: Callable[[Node, Kind], ClaimRef]
    go: Callable[[Node, ClaimRef, Order], None]
    answered: bool = False
    ends_others: bool = False
    fresh: bool = False

    def __str__(self) -> str:
        return self.name


def _allocated(node: Node, kind: Kind) -> ClaimRef:
    node.up()
    await_published(node)
    return node.add(wanted(kind))


def _prepared(node: Node, kind: Kind) -> ClaimRef:
    ref = _allocated(node, kind)
    assert node.kubelet.prepare(ref) == ""
    _until(node, lambda: bool(node.claims.told(ref)), "the claim's status")
    return ref


def _crashed(node: Node, kind: Kind) -> ClaimRef:
    """An agent that died at rest, while a card fell ill."""
    ref = _prepared(node, kind)
    node.down()
    ill = not node.machine.card(str(TAKEN)).health
    node.machine.set_card(str(TAKEN), health=ill)
    return ref


def _wiped(node: Node, kind: Kind) -> ClaimRef:
    ref = _prepared(node, kind)
    node.down()
    node.wipe_slices()
    return ref


def _rebooted(node: Node, kind: Kind) -> ClaimRef:
    """The tmpfs and the instances are gone; somebody makes his anew."""
    ref = _prepared(node, kind)
    node.down()
    node.machine.reboot()
    node.make_foreign()
    shutil.rmtree(node.cdi)
    return ref


def _damaged(node: Node, kind: Kind) -> ClaimRef:
    """The last record but the zeros that follow has a flipped bit."""
    ref = _prepared(node, kind)
    node.down()
    journal = node.state / "journal"
    content = bytearray(journal.read_bytes())
    content[len(content.rstrip(b"\0")) - 3] ^= 1
    journal.write_bytes(content)
    return ref


def _unfinished(node: Node, kind: Kind) -> ClaimRef:
    """Killed when all was made and nothing answered."""
    ref = _allocated(node, kind)
    give_order(node.agent.order, Moment(Point.CDI_RENAME, "after", 1))
    with suppress(NoAnswer):
        node.kubelet.prepare(ref)
    assert node.agent.ended(_SECONDS)
    return ref


def _new(node: Node, kind: Kind) -> ClaimRef:
    return node.add(wanted(kind))


def _looked_after(node: Node, kind: Kind) -> ClaimRef:
    """An agent that looks at the node all the time."""
    node.down()
    node.up({"care-interval": _OFTEN})
    return _prepared(node, kind)


def _prepare(node: Node, ref: ClaimRef, order: Order) -> None:
    _order(node, order)
    with suppress(NoAnswer):
        assert node.kubelet.prepare(ref) == ""
    _until(node, lambda: bool(node.claims.told(ref)), "the claim's status")


def _unprepare(node: Node, ref: ClaimRef, order: Order) -> None:
    _order(node, order)
    with suppress(NoAnswer):
        assert node.kubelet.unprepare(ref) == ""


def _start(node: Node, ref: ClaimRef, order: Order) -> None:
    node.boot(order)
    kubelet = Kubelet(node.sockets.registration)
    _until(node, kubelet.register, "an agent that serves")
    _until(node, lambda: is_published(node), "what must be published and told")


def _upgrade(node: Node, ref: ClaimRef, order: Order) -> None:
    """Another agent starts beside the one that serves."""
    node.next_pod()
    _start(node, ref, order)


def _publish(node: Node, ref: ClaimRef, order: Order) -> None:
    """The kubelet has started, while the agent ran on."""
    _order(node, order)
    node.wipe_slices()
    _until(node, lambda: is_published(node), "all slices again")


def _repair(node: Node, ref: ClaimRef, order: Order) -> None:
    """Somebody takes away what a claim has, and a look at the node finds it."""
    _order(node, order)
    grant = node.held[ref]
    if grant.mode is Mode.DRS:
        node.by_hand(grant.card, "--destroy-instance", str(instance_of(node, ref)))
    else:
        node.file_of(ref).unlink(missing_ok=True)
    _until(node, lambda: is_whole(node, ref), "the claim whole again")


def _stop(node: Node, ref: ClaimRef, order: Order) -> None:
    _order(node, order)
    node.agent.end(signal.SIGTERM)


def _order(node: Node, order: Order) -> None:
    if order is not None:
        give_order(node.agent.order, order)


def _until(node: Node, done: Callable[[], bool], what: str) -> None:
    """Wait until it is done, or the agent is dead."""
    wait_until(lambda: node.agent.ended() or done(), _SECONDS, what, seen=node.log, interval=0.05)


PREPARE = Operation("prepare", _allocated, _prepare)
UNPREPARE = Operation("unprepare", _prepared, _unprepare)
RECONCILE = Operation("reconcile", _looked_after, _repair, answered=True)
OPERATIONS = (
    PREPARE,
    UNPREPARE,
    Operation("publish", _prepared, _publish, answered=True),
    Operation("start", _crashed, _start, answered=True),
    Operation("start without slices", _wiped, _start, answered=True),
    Operation("recovery", _unfinished, _start),
    Operation("reboot", _rebooted, _start, answered=True, ends_others=True),
    Operation("damaged journal", _damaged, _start, answered=True),
    RECONCILE,
    Operation("upgrade", _prepared, _upgrade, answered=True),
    Operation("stop", _prepared, _stop, answered=True),
    Operation("first start", _new, _start, fresh=True),
)
BY_NAME = {operation.name: operation for operation in OPERATIONS}
