"""Pods whose node is named: what they are expected to get, and whether kube-scheduler follows."""

from __future__ import annotations

from collections.abc import Iterable

from controller.cache import pods
from controller.cache.keys import Key
from controller.nominate.followed_names import FollowedNames
from controller.nominate.nominations import Nominations, is_judged
from controller.nominate.replica_names import ReplicaNames
from controller.reconcile.context import Context
from controller.write.commands import LiftGate
from dra_driver.model.claims.claim import Object


class NamedPods:
    """One instance, one thread."""

    def __init__(self, context: Context, nominations: Nominations, followed: FollowedNames) -> None:
        self.nominations = nominations
        self.followed = followed
        self._context = context
        self._replicas = ReplicaNames(context.dispatcher.dispatch, context.clock)
        self._nodes: dict[Key, str] = {}  # of pods that are not bound
        self._judged_until: dict[Key, float] = {}  # of named pods without a gate

    def add(self, pod: Object, node: str, claims: Iterable[Object]) -> None:
        """`claims` are as `Nomination.claims`. The node of a pod that came without a gate, and that
        kube-scheduler has never refused, is named by kube-scheduler itself, which binds the pod."""
        if pods.has_our_gate(pod) or pods.not_scheduled(pod) is not None:
            self._nodes[pods.key_of(pod)] = node
        self.nominations.add(pod, node, claims)

    def write(self, command: LiftGate) -> None:
        """Name the node of a pod that was added, and lift the gate, in its turn."""
        self._replicas.add(command)
        self._plan(command.key)

    def is_held(self, key: Key) -> bool:
        """Whether it is not the pod's turn yet."""
        return self._replicas.is_held(key)

    def go_on(self, key: Key) -> None:
        """Write names that were held for too long, that of the pod among them. Each step of a held
        pod plans the next one anew."""
        self._replicas.go_on(key)
        self._plan(key)

    def _plan(self, key: Key) -> None:
        if (until := self._replicas.held_until(key)) is not None:
            self._context.queue.add(key, until)

    def await_verdict(self, pod: Object) -> None:
        """End the nomination of a pod that kube-scheduler has left without a word for too long:
        perhaps nobody serves its `schedulerName`. Each step plans this anew."""
        key, now = pods.key_of(pod), self._context.clock()
        if pods.has_our_gate(pod) or is_judged(pod) or not self.nominations.has(pod):
            return
        until = self._judged_until.setdefault(key, now + pods.BINDING_LIMIT)
        if now < until:
            self._context.queue.add(key, until)
        else:
            self.end(key)
            self.forget(key)

    def on_tried(self, key: Key) -> None:
        """A claim of the pod counts as it is: kube-scheduler has found a place for the pod, so the
        next replica may come to it."""
        if not self._replicas.is_held(key):
            self._replicas.end(key)

    def end(self, key: Key, *, is_bound: bool = False) -> None:
        """The pod's nomination ends: what it held may serve others, and one more may be named."""
        named = self.nominations.end(key, is_bound=is_bound)
        self._replicas.end(key)
        self._judged_until.pop(key, None)
        if not is_bound:
            self.forget_made(key)
        if named is None:
            return
        queue, now = self._context.queue, self._context.clock()
        queue.on_nodes_changed([named.node])
        for claim in named.claims:
            for user in map(pods.key_of, self._context.cache.pods_of(claim)):
                if user != key:
                    queue.add(user, now)

    def forget_made(self, key: Key) -> None:
        """Another device plugin serves the limits of the pod, or the pod is gone: kube-scheduler
        has made no claim for them, or it came and went unseen."""
        if node := self.nominations.forget_made(key):
            self._context.queue.on_nodes_changed([node])

    def count(self, pod: Object) -> None:
        """The pod is bound, or has ended."""
        named, node = self._nodes.pop(pods.key_of(pod), ""), pods.node_name(pod)
        if named and node:
            self.followed.record(followed=named == node)

    def forget(self, key: Key) -> None:
        """The pod's node does not count as named."""
        self._nodes.pop(key, None)

    def clear(self) -> None:
        """Another replica leads."""
        self.nominations.clear()
        self._replicas.clear()
        self._nodes.clear()
        self._judged_until.clear()
