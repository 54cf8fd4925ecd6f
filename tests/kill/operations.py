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
from typing import Final

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.effects import Point
from dra_driver.model.mode import Mode
from tests.cluster.waiting import wait_until
from tests.kill.cells import Next
from tests.kill.grants import TAKEN, Kind, wanted
from tests.kill.kubelet import NoAnswer
from tests.kill.moments import Moment, give_order
from tests.kill.node import Node
from tests.kill.outside import await_published, instance_of, is_whole

_SECONDS = 60.0
_OFTEN = 0.5  # seconds between two looks at the node

Order = Moment | None
_BEFORE_FILE: Final = Moment(Point.CDI_WRITE, "before", 1)


@dataclass(frozen=True, slots=True)
class Operation:
    """`ready(node, kind)` gives the claim it is about; `go(node, ref, order)` does it, to be
    killed at `order`.

    `answered`: the kubelet was told before that the claim is prepared, so it must stay so.
    `ends_others`: no other pod runs on with what it had. `fresh`: on a node on which no agent has
    ever run. `ends`: the kubelet wanted the claim's end. `restless`: the agent goes on looking at
    the node for ever. `plugin`: it is an agent that serves as a device plugin.
    """

    name: str
    ready: Callable[[Node, Kind], ClaimRef]
    go: Callable[[Node, ClaimRef, Order], None]
    answered: bool = False
    ends_others: bool = False
    fresh: bool = False
    ends: bool = False
    restless: bool = False
    plugin: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def nexts(self) -> tuple[Next, ...]:
        """What can come after it: without DRA there are no claims, and the kubelet knows what the
        next pod gets."""
        return (Next.RETRY, Next.GONE, Next.HANDED_ON if self.plugin else Next.RECREATED)


def allocated(node: Node, kind: Kind) -> ClaimRef:
    node.up()
    await_published(node)
    return node.add(wanted(kind))


def prepared(node: Node, kind: Kind) -> ClaimRef:
    ref = allocated(node, kind)
    assert node.prepare(ref) == ""
    until(node, lambda: node.is_told(ref), "what the API server is told")
    return ref


def crashed(node: Node, kind: Kind) -> ClaimRef:
    """An agent that died at rest, while a card fell ill."""
    ref = prepared(node, kind)
    node.down()
    ill = not node.machine.card(str(TAKEN)).health
    node.machine.set_card(str(TAKEN), health=ill)
    return ref


def wiped(node: Node, kind: Kind) -> ClaimRef:
    ref = prepared(node, kind)
    node.down()
    node.wipe_slices()
    return ref


def rebooted(node: Node, kind: Kind) -> ClaimRef:
    """The tmpfs and the instances are gone; somebody makes his anew."""
    ref = prepared(node, kind)
    node.down()
    node.machine.reboot()
    node.make_foreign()
    shutil.rmtree(node.cdi)
    return ref


def damaged(node: Node, kind: Kind) -> ClaimRef:
    """The last record but the zeros that follow has a flipped bit."""
    ref = prepared(node, kind)
    node.down()
    journal = node.state / "journal"
    content = bytearray(journal.read_bytes())
    content[len(content.rstrip(b"\0")) - 3] ^= 1
    journal.write_bytes(content)
    return ref


def unfinished(node: Node, kind: Kind) -> ClaimRef:
    """Killed when an instance was made that no record names, or before the file of what is
    recorded."""
    ref = allocated(node, kind)
    is_divided = node.held[ref].mode is Mode.DRS
    moment = Moment(Point.JOURNAL_APPEND, "before", 2) if is_divided else _BEFORE_FILE
    give_order(node.agent.order, moment)
    with suppress(NoAnswer):
        node.prepare(ref)
    assert node.agent.ended(_SECONDS)
    return ref


def new(node: Node, kind: Kind) -> ClaimRef:
    return node.add(wanted(kind))


def looked_after(node: Node, kind: Kind) -> ClaimRef:
    """An agent that looks at the node all the time."""
    node.down()
    node.up({"reconcile-interval": _OFTEN})
    return prepared(node, kind)


def prepare(node: Node, ref: ClaimRef, order: Order) -> None:
    order_to_die(node, order)
    with suppress(NoAnswer):
        assert node.prepare(ref) == ""
    until(node, lambda: node.is_told(ref), "what the API server is told")


def unprepare(node: Node, ref: ClaimRef, order: Order) -> None:
    order_to_die(node, order)
    with suppress(NoAnswer):
        assert node.unprepare(ref) == ""


def start(node: Node, ref: ClaimRef, order: Order) -> None:
    node.boot(order)
    until(node, node.is_served, "an agent that serves")
    until(node, node.publishes, "what must be published and told")


def upgrade(node: Node, ref: ClaimRef, order: Order) -> None:
    """Another agent starts beside the one that serves."""
    node.next_pod()
    start(node, ref, order)


def publish(node: Node, ref: ClaimRef, order: Order) -> None:
    """The kubelet has started, while the agent ran on."""
    order_to_die(node, order)
    node.wipe_slices()
    until(node, node.publishes, "all slices again")


def repair(node: Node, ref: ClaimRef, order: Order) -> None:
    """Somebody takes away what a claim has, and a look at the node finds it."""
    order_to_die(node, order)
    grant = node.held[ref]
    if grant.mode is Mode.DRS:
        node.by_hand(grant.card, "--destroy-instance", str(instance_of(node, ref)))
    else:
        node.file_of(ref).unlink(missing_ok=True)
    until(node, lambda: is_whole(node, ref), "the claim whole again")


def stop(node: Node, ref: ClaimRef, order: Order) -> None:
    order_to_die(node, order)
    node.agent.end(signal.SIGTERM)


def order_to_die(node: Node, order: Order) -> None:
    if order is not None:
        give_order(node.agent.order, order)


def until(node: Node, done: Callable[[], bool], what: str) -> None:
    """Wait until it is done, or the agent is dead."""
    wait_until(lambda: node.agent.ended() or done(), _SECONDS, what, seen=node.log, interval=0.05)


OPERATIONS = (
    Operation("prepare", allocated, prepare),
    Operation("unprepare", prepared, unprepare, ends=True),
    Operation("publish", prepared, publish, answered=True),
    Operation("start", crashed, start, answered=True),
    Operation("start without slices", wiped, start, answered=True),
    Operation("recovery", unfinished, start),
    Operation("reboot", rebooted, start, answered=True, ends_others=True),
    Operation("damaged journal", damaged, start, answered=True),
    Operation("reconcile", looked_after, repair, answered=True, restless=True),
    Operation("upgrade", prepared, upgrade, answered=True),
    Operation("stop", prepared, stop, answered=True),
    Operation("first start", new, start, fresh=True),
)
