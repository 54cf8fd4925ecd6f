"""A cluster without DRA as it really is, and what the extender hears of it, each in its own time.

Binding, watch, kubelet, agent and the end of pods come in any order that a real cluster allows. The
kubelet follows the extender's hint; what is held against it is whether there ever is no room then.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from controller.allocator.packing.policy import Policy
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.decide import filter_nodes, place, prioritize
from controller.extender.limit_request import LimitRequest, parse_limits
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold, NodeCard, render_cards
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED, ANNOTATION_CARDS
from dra_driver.model.pci import PciAddress

ROOM: Final = 6
_ASKS: Final = (
    *((Mode.SHARED, (amount,)) for amount in (1, 2, 3, 4, 6)),
    *((Mode.DRS, (size,)) for size in (1, 3, 6)),
    (Mode.DRS, (1, 3)),
    (Mode.SHARED, (2, 1)),
    (Mode.WHOLE, (1,)),
    (Mode.WHOLE, (2,)),
)


@dataclass(slots=True)
class RealCard:
    """`held` has what each pod's containers have of it."""

    mode: Mode | None = None
    held: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    @property
    def used(self) -> int:
        return sum(amount for holds in self.held.values() for _, amount in holds)


@dataclass(slots=True)
class RealPod:
    """A pod that is bound to `node` and was placed on `cards`."""

    obj: Object
    asked: LimitRequest
    node: str
    cards: tuple[PciAddress, ...]
    watched: bool = False
    admitted: bool = False
    told: bool = False


class Broken(AssertionError):
    """The kubelet had no room where the extender had sent a pod."""


class History:
    """One random history of `steps` steps; raises Broken where it goes wrong."""

    def __init__(self, seed: int, *, nodes: int = 2, cards: int = 3) -> None:
        self._random = random.Random(seed)
        self._view = AnnotatedCluster()
        self._cards = {
            f"node-{n}": {PciAddress(0, c, 0, 0): RealCard() for c in range(1, cards + 1)}
            for n in range(nodes)
        }
        self._pods: dict[str, RealPod] = {}
        self._recorded: set[str] = set()
        self._made = 0
        self.bound = self.refused = 0
        for node in self._cards:
            self._report(node)

    def run(self, steps: int) -> None:
        actions: list[Callable[[], None]] = [
            *(self._submit,) * 4,
            *(self._watch,) * 3,
            *(self._admit,) * 4,
            *(self._record, self._tell) * 2,
            *(self._end,) * 2,
            self._leave_modes,
        ]
        for _ in range(steps):
            self._random.choice(actions)()

    def _submit(self) -> None:
        self._made += 1
        mode, amounts = self._random.choice(_ASKS)
        obj = _pod(f"pod-{self._made}", mode, amounts)
        nodes = list(self._cards)
        fit = filter_nodes(self._view, Policy(), obj, nodes).fit
        if not fit:
            self.refused += 1
            return
        scores = prioritize(self._view, Policy(), obj, fit)
        # Other scores of kube-scheduler's may outweigh ours: any node that fits is right.
        node = max(scores, key=scores.__getitem__) if self._chance() else self._random.choice(fit)
        asked = parse_limits(obj)
        assert asked is not None
        tenant = place(self._view, Policy(), obj, asked, node)
        self._view.assume(tenant)
        self._pods[tenant.uid] = RealPod(obj, asked, node, tenant.cards)
        self.bound += 1

    def _watch(self) -> None:
        pod = self._any(lambda each: not each.watched)
        if pod is not None:
            pod.watched = True
            self._view.put_pod(_bound(pod))

    def _admit(self) -> None:
        pod = self._any(lambda each: not each.admitted)
        if pod is None:
            return
        pod.admitted = True
        cards = self._cards[pod.node]
        uid = pod.obj["metadata"]["uid"]
        if pod.asked.mode is Mode.WHOLE:
            parts = [(address, [("c0", 1)]) for address in pod.cards]
        else:
            parts = [(pod.cards[0], list(pod.asked.containers))]
        for address, holds in parts:
            card = cards[address]
            room = ROOM if pod.asked.mode is not Mode.WHOLE else 1
            if card.mode not in {None, pod.asked.mode}:
                raise Broken(f"{uid} asks for {pod.asked.mode}, and {address} is {card.mode}")
            if card.used + sum(amount for _, amount in holds) > room:
                raise Broken(f"{uid} asks for {holds}, and {address} has {card.held}")
            card.mode = pod.asked.mode
            card.held[uid] = holds

    def _record(self) -> None:
        """The kubelet has written down whose the devices are."""
        held = {
            uid for cards in self._cards.values() for card in cards.values() for uid in card.held
        }
        # A set has another order in each process, and the seed would not say what is drawn.
        self._recorded |= {uid for uid in sorted(held) if self._chance()}

    def _tell(self) -> None:
        self._report(self._random.choice(list(self._cards)))

    def _end(self) -> None:
        """Only pods that the kubelet has seen, as it confirms the end of each, and of which the
        agent has told: it does so before their containers are made."""
        pod = self._any(lambda each: each.told)
        if pod is None:
            return
        uid = pod.obj["metadata"]["uid"]
        for card in self._cards[pod.node].values():
            card.held.pop(uid, None)
        del self._pods[uid]
        if not pod.watched:
            self._view.put_pod(_bound(pod))
        self._view.drop_pod(uid)

    def _leave_modes(self) -> None:
        """The agent's look: what nothing is left on is free again."""
        for cards in self._cards.values():
            for card in cards.values():
                if not card.held and self._chance():
                    card.mode = None

    def _report(self, node: str) -> None:
        told = tuple(self._told(address, card) for address, card in self._cards[node].items())
        for pod in self._pods.values():
            pod.told = pod.told or (pod.admitted and pod.node == node)
        annotations = {ANNOTATION_CARDS: render_cards(told)}
        self._view.put_node({"metadata": {"name": node, "annotations": annotations}})

    def _told(self, address: PciAddress, card: RealCard) -> NodeCard:
        held = [
            Hold(uid, container, amount) if uid in self._recorded else Hold("", "", amount)
            for uid, holds in card.held.items()
            for container, amount in holds
        ]
        return NodeCard(
            address,
            index=address.bus,
            minor=address.bus,
            slices=ROOM,
            profiles=("1g.6gb", "3g.20gb", "6g.40gb"),
            total=ROOM,
            mode=card.mode,
            held=tuple(held),
        )

    def _any(self, matches: Callable[[RealPod], bool]) -> RealPod | None:
        found = [each for each in self._pods.values() if matches(each)]
        return self._random.choice(found) if found else None

    def _chance(self) -> bool:
        return self._random.random() < 0.5


def _pod(name: str, mode: Mode, amounts: tuple[int, ...]) -> Object:
    containers = [
        {"name": f"c{n}", "resources": {"limits": {RESOURCES[mode]: str(amount)}}}
        for n, amount in enumerate(amounts)
    ]
    return {
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
        "spec": {"containers": containers},
    }


def _bound(pod: RealPod) -> Object:
    hint = {ANNOTATION_ASSIGNED: ",".join(map(str, pod.cards))}
    return {
        "metadata": {**pod.obj["metadata"], "annotations": hint},
        "spec": {**pod.obj["spec"], "nodeName": pod.node},
    }
