"""What the controller does while kube-scheduler allocates: it reports what cannot be right, and
makes the claim templates for pods with limits."""

from __future__ import annotations

from collections.abc import Iterator

from controller.allocator.allocated_devices import DeviceUsage
from controller.allocator.device import Device
from controller.cache import pods
from controller.cache.cache import Changed
from controller.cache.keys import Key, Subject
from controller.nominate.nominator import Nominator
from controller.reconcile.context import Context
from controller.reconcile.templates import TemplateReconciler
from controller.write.commands import (
    CreateTemplate,
    DeleteTemplate,
    LiftGate,
    NameNode,
    ReadVolumes,
    WriteDone,
)
from dra_driver.model.claims.claim import Object, results

_CHECK_AGAIN = 1.0  # seconds
_CHECK_NEXT = 0.01  # seconds between the checks of claims that were in use before


class Observer:
    """The controller's `KeyReconciler` while kube-scheduler allocates. It allocates nothing and
    releases nothing. Without a nominator the gates of pods are lifted as soon as they are seen."""

    def __init__(self, context: Context, nominator: Nominator | None) -> None:
        self._context = context
        self._nominator = nominator
        self._templates = TemplateReconciler(context)
        self._checks_all = False

    def reconcile(self, key: Key) -> None:
        """Do what is to be done for the object of that name."""
        context = self._context
        if not self._checks_all:
            self._checks_all = True
            self._plan_checks()
        if key.subject is Subject.TEMPLATE:
            self._templates.reconcile(key)
            return
        obj = context.cache.get(key)
        if key.subject is Subject.CLAIM:
            self._check_claim(key, obj)
        elif self._nominator is not None:
            self._nominator.reconcile(key)
        elif obj is not None and pods.has_our_gate(obj) and not context.dispatcher.in_flight(obj):
            # Nothing else removes it, and kube-scheduler allocates nothing for a gated pod.
            context.dispatcher.dispatch(LiftGate(key=key, pod=obj))

    def on_change(self, changed: Changed, now: float) -> None:
        """Nothing is recorded of claims: kube-scheduler decides when to allocate them."""

    def on_answer(self, done: WriteDone) -> None:
        """As `KeyReconciler.on_answer`."""
        command, answer = done.command, done.answer
        if isinstance(command, CreateTemplate | DeleteTemplate):
            self._templates.on_answer(command, answer)
            return
        if self._nominator is not None:
            match command:
                case LiftGate():
                    self._nominator.on_lifted(command, answer)
                case NameNode():
                    self._nominator.on_named(command, answer)
                case ReadVolumes():
                    self._nominator.on_volumes(command, answer)
        if answer.error is not None:
            raise answer.error
        self._context.queue.add(command.key, self._context.clock())

    def remove_waiting(self, key: Key) -> None:
        """As `KeyReconciler.remove_waiting`."""
        if self._nominator is not None:
            self._nominator.remove_waiting(key)

    def clear(self) -> None:
        """As `KeyReconciler.clear`."""
        self._checks_all = False
        if self._nominator is not None:
            self._nominator.clear()

    def _plan_checks(self) -> None:
        """Of all claims in use, since this replica leads: one after the other, as claims come
        before pods in the queue, and a cluster has tens of thousands."""
        now = self._context.clock()
        for number, key in enumerate(self._context.cache.claims_in_use(), 1):
            self._context.queue.add(key, now + number * _CHECK_NEXT)

    def _check_claim(self, key: Key, claim: Object | None) -> None:
        """Report devices that are allocated twice. Not while a pod is named for the node: what it
        will get counts as allocated, and kube-scheduler may have given that to another."""
        context, nominator = self._context, self._nominator
        if nominator is not None:
            nominator.on_claim(key, claim)
            nodes = () if claim is None else context.nodes_of(each.pool for each in results(claim))
            if any(nominator.nominations.on(node) for node in nodes):
                context.queue.add(key, context.clock() + _CHECK_AGAIN)
                return
        note = None if claim is None else "; ".join(self._conflicts(claim))
        for other in context.reporter.allocated_twice(key, claim, note):
            context.queue.add(other, context.clock())

    def _conflicts(self, claim: Object) -> Iterator[str]:
        """In words, what is allocated twice of each card of the claim."""
        state = self._context.cache.state()
        given = {(each.pool, each.device) for each in results(claim) if not each.admin_access}
        for pool in sorted({pool for pool, _ in given}):
            devices = state.inventory.devices_of(state.inventory.node_of(pool) or "")
            cards = {each.card for each in devices if each.id in given}
            used = [
                (each, use)
                for each in devices
                if each.card in cards and (use := state.allocated.use(each.id)) is not None
            ]
            for card in sorted(filter(None, cards)):
                names = [each.id.name for each, _ in used if each.card == card]
                if len(names) > 1:
                    yield f"{' and '.join(names)} of pool {pool} are allocated at the same time"
            for device, use in used:
                if _is_exceeded(device, use):
                    yield f"more of {device.id.name} of pool {pool} is allocated than there is"


def _is_exceeded(device: Device, use: DeviceUsage) -> bool:
    if use.wholes:
        return use.wholes > 1 or bool(use.shares)
    return any(
        use.consumed.get(name, 0) > capacity.total.value
        for name, capacity in device.kind.capacity.items()
    )
