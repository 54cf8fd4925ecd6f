"""Counts what must never be, from what there is. Pure, but for the words of a pod that waits.

Two looks are given at a time. What both have was there at every moment between them, so facts that
were read one after another are judged together; what only one has is in the midst of a change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from dra_driver.model.claims.claim import allocation, reserved_for
from dra_driver.model.mode import Mode
from dra_driver.model.names import pool_name
from tests.chaos.look import Card, Container, Holding, Look, Place, holdings
from tests.chaos.workload import NEED
from tests.cluster.workloads import is_ready
from tests.e2e.seen import claim_names, grants, used_by

Object = dict[str, Any]

SLICES: Final = 6
"""Of each card, in either mode."""

PATIENCE: Final = 120.0
"""Seconds for which a pod may be stuck, or an instance be nobody's: an agent may be away."""


_A_NODE: Final = "a node"


class Kind(StrEnum):
    """What can be violated."""

    TWO_HOLDERS = "two holders of a share"
    MIXED_MODES = "modes mixed"
    OTHER_DEVICES = "a container with other devices than its claim's"
    NO_OWNER = "an instance without owner"
    STUCK = "a pod stuck without a reason"
    FREE = "a pod that waits for what is free"
    ENDED = "a program that ended by itself"


@dataclass(frozen=True, slots=True)
class Violation:
    """`about` is what it is about: the same is counted once."""

    kind: Kind
    about: str
    text: str


class Auditor:
    """Remembers what it saw: what pods hold that are no longer on the API server, and since when
    something is as it is."""

    def __init__(self, reason: Callable[[Object], str]) -> None:
        """`reason` gives what the cluster says of why a pod is not ready, or ""."""
        self._reason = reason
        self._found: dict[tuple[Kind, str], Violation] = {}
        self._held: dict[str, tuple[Holding, ...]] = {}
        self._since: dict[tuple[str, str], float] = {}

    @property
    def violations(self) -> tuple[Violation, ...]:
        """All that were found, in their order."""
        return tuple(self._found.values())

    def counts(self) -> Mapping[Kind, int]:
        """How many of each kind; 0 where there is none."""
        found = Counter(each.kind for each in self._found.values())
        return {kind: found[kind] for kind in Kind}

    def add_ended(self, container: str, text: str) -> None:
        """Count an end of one of the driver's programs that nobody asked for."""
        self._add(Kind.ENDED, container, text)

    def judge(self, first: Look, second: Look) -> None:
        """Judge what was the same in both looks."""
        for look in (first, second):
            self._remember(look)
        running = {
            each.id: each for each in second.containers.values() if each.id in first.containers
        }
        self._judge_claims(second)
        self._judge_holders(running.values())
        self._judge_modes(running.values(), first.cards, second.cards)
        self._judge_views(running.values(), first, second)
        self._judge_owners(first, second)
        self._judge_waiting(second)

    def unsettled(self, look: Look) -> dict[str, tuple[Kind, str]]:
        """By name the pods that are not as they should be where nothing is disturbed any more: all
        but those that run, that have ended, and that wait for what others hold."""
        held = _by_place(each for claim in look.claims.values() for each in holdings(claim))
        cards = [held.get(place, []) for place in look.cards]
        found = {}
        for pod in look.pods.values():
            state, need = _waits(pod), (pod["metadata"].get("annotations") or {}).get(NEED)
            name = pod["metadata"]["name"]
            if state and state != _A_NODE:
                found[name] = (Kind.STUCK, f"pod {name} waits for {state} at rest")
            elif state and need and _has_room(need, cards):
                found[name] = (Kind.FREE, f"pod {name} waits for {need}, which is free")
        return found

    def judge_rest(self, look: Look) -> None:
        """Judge a cluster that had its time to come to rest."""
        for name, (kind, text) in self.unsettled(look).items():
            pod = next(each for each in look.pods.values() if each["metadata"]["name"] == name)
            self._add(kind, name, f"{text}; it is told: {self._reason(pod) or '(nothing)'}")

    def _add(self, kind: Kind, about: str, text: str) -> None:
        """Count a violation, unless it is counted."""
        self._found.setdefault((kind, about), Violation(kind, about, text))

    def _remember(self, look: Look) -> None:
        for uid, pod in look.pods.items():
            claims = [_claim(look, pod, name) for name in claim_names(pod).values()]
            ours = [each for each in claims if each and _is_reserved(each, uid)]
            if claims and len(ours) == len(claims):
                self._held[uid] = tuple(held for claim in ours for held in holdings(claim))

    def _judge_claims(self, look: Look) -> None:
        """Of what is allocated; a list of claims is of one moment."""
        found = _by_place(each for claim in look.claims.values() for each in holdings(claim))
        names = {uid: claim["metadata"]["name"] for uid, claim in look.claims.items()}
        self._judge_places(found, lambda held: f"claim {names[held.claim]}")

    def _judge_holders(self, running: Iterable[Container]) -> None:
        """Of what containers have, those of deleted pods, too."""
        held = {each for one in running for each in self._held.get(one.pod, ())}
        self._judge_places(_by_place(held), lambda held: f"containers of claim {held.claim}")

    def _judge_places(
        self, found: Mapping[Place, list[Holding]], title: Callable[[Holding], str]
    ) -> None:
        for (pool, card), held in found.items():
            what = ", ".join(sorted(f"{title(one)}: {one.mode} {one.amount}" for one in held))
            text = f"card {card} of {pool} is held by {what}"
            if len({one.mode for one in held}) > 1:
                self._add(Kind.MIXED_MODES, text, text)
            elif _is_full(held, 0):
                self._add(Kind.TWO_HOLDERS, text, text)

    def _judge_modes(
        self,
        running: Iterable[Container],
        first: Mapping[Place, Card],
        second: Mapping[Place, Card],
    ) -> None:
        for one in running:
            for held in self._held.get(one.pod, ()):
                divided = first[held.place].divided and second[held.place].divided
                if divided and held.mode is not Mode.DRS:
                    pool, card = held.place
                    text = (
                        f"card {card} of {pool} is in DRS mode, and pod {one.pod} has {held.mode}"
                    )
                    self._add(Kind.MIXED_MODES, text, text)

    def _judge_views(self, running: Iterable[Container], first: Look, second: Look) -> None:
        for one in running:
            pod, before = second.pods.get(one.pod), first.pods.get(one.pod)
            if pod is None or before is None:
                continue
            expected = _expected(first, before, one.name)
            if expected is not None and expected == _expected(second, pod, one.name):
                wrong = _difference(one, expected, second.cards)
                if wrong:
                    name = f"container {one.name} of {pod['metadata']['name']}"
                    self._add(Kind.OTHER_DEVICES, f"{name} {one.id}", f"{name} {wrong}")

    def _judge_owners(self, first: Look, second: Look) -> None:
        nobodys = set()
        for (pool, address), card in second.cards.items():
            owned = (first.owned[pool], second.owned[pool])
            for uuid in card.instances:
                subject = ("instance", uuid)
                if None in owned:
                    nobodys |= {subject} & self._since.keys()
                elif not any(uuid in each for each in owned if each is not None):
                    nobodys.add(subject)
                    if self._lasts(subject, second.at):
                        text = f"instance {uuid} of card {address} of {pool} is nobody's"
                        self._add(Kind.NO_OWNER, uuid, text)
        self._forget("instance", nobodys)

    def _judge_waiting(self, look: Look) -> None:
        waiting = set()
        for uid, pod in look.pods.items():
            state = _waits(pod)
            if not state:
                continue
            subject = ("pod", f"{uid} {state}")
            waiting.add(subject)
            if self._lasts(subject, look.at) and not self._reason(pod):
                name = pod["metadata"]["name"]
                self._add(Kind.STUCK, name, f"pod {name} waits for {state}, and nothing says why")
        self._forget("pod", waiting)

    def _lasts(self, subject: tuple[str, str], now: float) -> bool:
        return now - self._since.setdefault(subject, now) > PATIENCE

    def _forget(self, what: str, but: set[tuple[str, str]]) -> None:
        gone = [each for each in self._since if each[0] == what and each not in but]
        for each in gone:
            del self._since[each]


Expected = tuple[frozenset[Place], tuple[tuple[Place, int], ...]]
"""The cards that a container is to see, and the instances that it may name: card and size."""


def _expected(look: Look, pod: Object, container: str) -> Expected | None:
    """None while not all of the pod's claims are allocated."""
    found = []
    for reference, name in claim_names(pod).items():
        claim = _claim(look, pod, name)
        if claim is None or allocation(claim) is None:
            return None
        found += grants(reference, claim)
    pool = pool_name(pod["spec"]["nodeName"])
    used = dict(used_by(pod, found))[container]
    cards = frozenset((pool, each.card) for each in used)
    sizes = tuple(((pool, each.card), each.amount or 0) for each in used if each.mode is Mode.DRS)
    return cards, sizes


def _difference(one: Container, expected: Expected, cards: Mapping[Place, Card]) -> str:
    """How the container's view differs from what is expected; "" where it does not."""
    places, instances = expected
    minors = frozenset(cards[place].minor for place in places)
    if one.minors != minors or one.visible != minors:
        return (
            f"has device nodes {sorted(one.minors)} and names {sorted(one.visible)}, "
            f"and its claims have {sorted(minors)}"
        )
    if bool(one.instance) != bool(instances):
        return f"names instance {one.instance or '(none)'}, and its claims have {instances}"
    if one.instance and all(
        cards[place].instances.get(one.instance) != size for place, size in instances
    ):
        return f"names instance {one.instance}, which is none of {instances}"
    return ""


def _has_room(need: str, cards: Iterable[list[Holding]]) -> bool:
    """Whether a pod fits that needs ``<mode> <amount>``. An instance may not fit between others, so
    only a free card counts as room for one."""
    word, amount = need.split()
    mode = Mode(word)
    return any(
        not held
        or (
            mode is Mode.SHARED
            and {each.mode for each in held} == {mode}
            and not _is_full(held, int(amount))
        )
        for held in cards
    )


def _is_full(held: Iterable[Holding], more: int) -> bool:
    """Whether a card cannot carry that and so much more."""
    found = list(held)
    if any(each.mode is Mode.WHOLE for each in found):
        return len(found) + bool(more) > 1
    return sum(each.amount for each in found) + more > SLICES


def _by_place(found: Iterable[Holding]) -> dict[Place, list[Holding]]:
    by_place: dict[Place, list[Holding]] = defaultdict(list)
    for each in found:
        by_place[each.place].append(each)
    return by_place


def _claim(look: Look, pod: Object, name: str) -> Object | None:
    return look.claim(pod["metadata"]["namespace"], name)


def _is_reserved(claim: Object, pod: str) -> bool:
    return any(consumer["uid"] == pod for consumer in reserved_for(claim))


def _waits(pod: Object) -> str:
    """What a pod waits for; "" for one that is ready or has ended."""
    status = pod["status"]
    if "deletionTimestamp" in pod["metadata"]:
        return "its end"
    if status["phase"] in {"Succeeded", "Failed"} or is_ready(pod):
        return ""
    return "its containers" if pod["spec"].get("nodeName") else _A_NODE
