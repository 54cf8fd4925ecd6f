"""Calls that come at the same time, and what of them must have come true."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from dra_driver.model.pci import PciAddress
from tests.unit.node.outside import Outside, card_of

Verb = Literal["prepare", "unprepare", "look"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One call; `uid` is the claim's, empty for a look at the node."""

    verb: Verb
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.uid}".strip()


@dataclass(slots=True)
class Rush:
    """`calls` are made at once; `fits` says of each new claim whether it fitted before, alone.
    `given_back` are cards that the other claims had before: one that was allocated anew gives its
    former ones back."""

    outside: Outside
    calls: Sequence[Asked]
    fits: Mapping[str, bool | None] = field(default_factory=dict)
    given_back: Collection[PciAddress] = ()

    @classmethod
    def of(cls, outside: Outside, random: Random, new: Sequence[str], old: Sequence[str]) -> Rush:
        """Each of the `new` claims is prepared, some twice, and something is done to the `old`."""
        calls = [Asked("prepare", uid) for uid in new]
        if random.random() < 0.4:
            calls.append(Asked("prepare", random.choice(new)))
        if old and random.random() < 0.6:
            calls.append(Asked(random.choice(("prepare", "unprepare")), random.choice(old)))
        if random.random() < 0.3:
            calls.append(Asked("look"))
        random.shuffle(calls)
        others = {call.uid for call in calls if call.uid} - {*new}
        fits = {uid: outside.fits(uid) for uid in new}
        return cls(outside, calls, fits, _cards(outside, others))

    def judge(self, done: Sequence[bool]) -> None:
        """`done` says which calls succeeded. Whatever their order was: of a card that only new
        claims wanted, nothing was given that was not there, and where something was, somebody got
        it."""
        old = {call.uid for call in self.calls if call.uid} - self.fits.keys()
        answers: dict[str, set[bool]] = {}
        for call, ok in zip(self.calls, done, strict=True):
            answers.setdefault(call.uid, set()).add(ok)
        others = _cards(self.outside, old).union(self.given_back)
        for card in _cards(self.outside, self.fits) - others:
            self._judge_card(card, answers)

    def _judge_card(self, card: PciAddress, answers: Mapping[str, set[bool]]) -> None:
        wanting = [uid for uid in self.fits if card_of(self.outside.results(uid)[0]) == card]
        looks = any(call.verb == "look" for call in self.calls)
        for uid in wanting:
            # Of what has gone a look learns, which may come between two calls for one claim.
            is_open = looks and self.fits[uid] is None
            assert is_open or len(answers[uid]) == 1, f"two answers for {uid}"
            assert not (self.fits[uid] is False and True in answers[uid]), f"{uid} cannot fit"
        if any(self.fits[uid] for uid in wanting):
            assert any(True in answers[uid] for uid in wanting), f"nobody got anything of {card}"


def _cards(outside: Outside, uids: Collection[str]) -> set[PciAddress]:
    return {card_of(result) for uid in uids for result in outside.results(uid)}
