"""What an agent does while it is killed that serves its cards as a device plugin."""

from __future__ import annotations

from dra_driver.model.claims.claim import ClaimRef
from tests.kill.grants import Kind
from tests.kill.node import Node
from tests.kill.operations import (
    Operation,
    Order,
    allocated,
    crashed,
    damaged,
    looked_after,
    order_to_die,
    prepare,
    prepared,
    rebooted,
    repair,
    start,
    stop,
    unfinished,
    unprepare,
    until,
)
from tests.kill.plugin_node import PluginNode


def _handed_on(node: Node, kind: Kind) -> ClaimRef:
    """The kubelet gives out what a pod had of whose end the agent does not know."""
    assert isinstance(node, PluginNode)
    ref = allocated(node, kind)
    node.hand_on(ref)
    return ref


def _register(node: Node, ref: ClaimRef, order: Order) -> None:
    """The kubelet starts, while the agent runs on."""
    assert isinstance(node, PluginNode)
    order_to_die(node, order)
    node.pods.stop()
    node.pods.expect()
    node.pods.start()
    until(node, node.is_served, "an agent that is registered again")


PLUGIN_OPERATIONS = (
    Operation("allocate", allocated, prepare, plugin=True),
    Operation("release", prepared, unprepare, plugin=True, ends=True),
    Operation("hand on", _handed_on, prepare, plugin=True),
    Operation("kubelet start", prepared, _register, plugin=True, answered=True),
    Operation("plugin start", crashed, start, plugin=True, answered=True),
    Operation("plugin damaged", damaged, start, plugin=True, answered=True),
    Operation("plugin recovery", unfinished, start, plugin=True),
    Operation("plugin reboot", rebooted, start, plugin=True, answered=True, ends_others=True),
    Operation("plugin reconcile", looked_after, repair, plugin=True, answered=True, restless=True),
    Operation("plugin stop", prepared, stop, plugin=True, answered=True),
)
