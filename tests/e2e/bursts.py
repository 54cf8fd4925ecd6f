"""Many pods by limits at once on a cluster without DRA, and what became of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from dra_driver.model.devices.node_cards import NodeCard
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from tests.cluster.waiting import wait_until
from tests.e2e.without_dra import OldInstallation, asking

Object = dict[str, Any]

SLICES = 6  # of each card, in every mode
_SECONDS = 480.0


@dataclass(frozen=True, slots=True)
class Request:
    """What one pod asks for: a card, slices of one, or an instance of that size."""

    mode: Mode
    amount: int = 1

    @property
    def slices(self) -> int:
        """How much of a card it takes."""
        return SLICES if self.mode is Mode.WHOLE else self.amount

    def limits(self) -> Mapping[str, int]:
        return {RESOURCES[self.mode]: self.amount}


# How many of 50 pods ask for each, on the average: 1.3 times what 12 cards have.
_WEIGHTS: Mapping[Request, int] = {
    Request(Mode.SHARED, 1): 14,
    Request(Mode.SHARED, 2): 8,
    Request(Mode.SHARED, 3): 3,
    Request(Mode.DRS, 1): 16,
    Request(Mode.DRS, 3): 5,
    Request(Mode.DRS, 6): 2,
    Request(Mode.WHOLE): 2,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of a burst's pods: how many run, which words their nodes had for not admitting others
    (UnexpectedAdmissionError), how many failed otherwise, and how many wait, as no card has room.

    `granted` is how many slices those have that run; `seconds` is the time from the first pod's
    creation until all of them are one of these.
    """

    running: int
    refusals: tuple[str, ...]
    failed: int
    waiting: int
    granted: int
    seconds: float


def mixed(random: Random, count: int = 50) -> list[Request]:
    """What so many pods ask for, in random order."""
    return random.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=count)


def burst(
    driver: OldInstallation, namespace: str, requests: Sequence[Request], **spec: Any
) -> Outcome:
    """Create a pod for each of `requests`, all at once; returns when every pod runs for which any
    card has room. Raises WaitTimeout."""
    asked = {f"pod-{number:02}": each for number, each in enumerate(requests)}
    begun = time.monotonic()
    driver.cluster.apply(
        *(asking(name, namespace, each.limits(), **spec) for name, each in asked.items())
    )
    found = wait_until(
        lambda: _settled(driver, namespace, asked),
        _SECONDS,
        "every pod that fits to run",
        seen=lambda: driver.cluster.kubectl("get", "pods", "--output=wide", "-n", namespace),
        interval=1.0,
    )
    seconds = time.monotonic() - begun
    running = [each["metadata"]["name"] for each in found if _phase(each) == "Running"]
    failed = [each["status"] for each in found if _phase(each) == "Failed"]
    refused = [each for each in failed if each.get("reason") == "UnexpectedAdmissionError"]
    return Outcome(
        running=len(running),
        refusals=tuple(each["message"] for each in refused),
        failed=len(failed) - len(refused),
        waiting=len(found) - len(running) - len(failed),
        granted=sum(asked[name].slices for name in running),
        seconds=seconds,
    )


def _settled(
    driver: OldInstallation, namespace: str, asked: Mapping[str, Request]
) -> list[Object] | None:
    """The pods, when each runs or failed, or has no node and fits on none."""
    found: list[Object] = driver.cluster.get("pods", f"--namespace={namespace}")["items"]
    cards = [card for node in driver.machines for card in driver.cards(node)]
    running = {each["metadata"]["uid"] for each in found if _phase(each) == "Running"}
    # Cards are told of a moment later than pods.
    if len(found) < len(asked) or not running <= _holders(cards):
        return None
    pending = [each for each in found if _phase(each) == "Pending"]
    if any(
        "nodeName" in each["spec"] or _fits(asked[each["metadata"]["name"]], cards)
        for each in pending
    ):
        return None
    return found


def _phase(pod: Object) -> str:
    return str(pod["status"]["phase"])


def _holders(cards: Iterable[NodeCard]) -> set[str]:
    return {hold.pod for card in cards for hold in card.held}


def _fits(request: Request, cards: Iterable[NodeCard]) -> bool:
    return any(
        card.mode is None
        or (
            card.mode is request.mode is not Mode.WHOLE
            and request.amount + sum(hold.amount for hold in card.held) <= SLICES
        )
        for card in cards
    )
