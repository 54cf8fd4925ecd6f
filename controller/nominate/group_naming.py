"""How far a group is on its way to kube-scheduler: all names, then all gates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from controller.cache import pods
from controller.cache.keys import Key
from controller.cache.pod_groups import Name
from controller.reconcile.context import Context
from controller.write.commands import LiftGate, NameNode
from controller.write.node_hint import NodeHint
from dra_driver.model.claims.claim import Object


@dataclass(slots=True)
class GroupNaming:
    """One gated member holds the whole group back, so kube-scheduler tries it when the last gate is
    gone, and by then all names are there. `nodes` are those of the members that have one, `to_name`
    and `to_lift` what is left to be done. What has `failed` is tried again in the member's own
    step, after its backoff."""

    group: Name
    nodes: dict[Key, str]
    to_name: dict[Key, None] = field(default_factory=dict)
    to_lift: dict[Key, None] = field(default_factory=dict)
    failed: set[Key] = field(default_factory=set)

    @property
    def is_done(self) -> bool:
        return not (self.to_name or self.to_lift)

    def has(self, key: Key) -> bool:
        return key in self.nodes or key in self.to_lift

    def forget(self, key: Key) -> None:
        """Nothing is left to be done for the member."""
        self.to_name.pop(key, None)
        self.to_lift.pop(key, None)

    def go_on(self, context: Context, hint: NodeHint) -> None:
        """Dispatch what is to be written next, as much as there is room for: no gate before all
        names are there."""
        make = self._name if self.to_name else self._lift(hint)
        for key in tuple(self.to_name or self.to_lift):
            if not context.dispatcher.has_room():
                return
            pod = context.cache.get(key)
            if key in self.failed:
                continue
            if pod is not None and not context.dispatcher.in_flight(pod):
                context.dispatcher.dispatch(make(key, pod))

    def _name(self, key: Key, pod: Object) -> NameNode | LiftGate:
        return NameNode(key=key, pod=pod, node=self.nodes.get(key, ""))

    def _lift(self, hint: NodeHint) -> Callable[[Key, Object], NameNode | LiftGate]:
        """A hint that is no name is written with the patch that removes the gate."""

        def make(key: Key, pod: Object) -> LiftGate:
            node = "" if hint is NodeHint.NAME else self.nodes.get(key, "")
            return LiftGate(key=key, pod=pod, node=node, hint=hint)

        return make


def naming(
    group: Name, nodes: dict[Key, str], waiting: list[Object], hint: NodeHint
) -> GroupNaming:
    """For the `waiting` members; `nodes` are those of the members that have a place. Another gated
    member may still have the name of an earlier attempt. That name is removed: kube-scheduler would
    give the member devices that others are named for."""
    to_name = {
        pods.key_of(pod): None
        for pod in waiting
        if (node := nodes.get(pods.key_of(pod), "")) != pods.nominated_node(pod)
        and (hint is NodeHint.NAME if node else pods.has_our_gate(pod))
    }
    to_lift = {pods.key_of(pod): None for pod in waiting if pods.has_our_gate(pod)}
    return GroupNaming(group, nodes, to_name, to_lift)
