"""The writer of claims' statuses, with claims and cards that are played."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from dra_driver.agent.context import AgentContext
from dra_driver.agent.dra.claim_status import ClaimStatuses
from dra_driver.kube.api import PatchType
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import RESOURCE_CLAIMS, Resource
from dra_driver.model.card import Problem
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.errors import JournalError
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevice, record
from dra_driver.node.claims.failures import Waiting
from tests.unit.node.world import CARDS, card, claim, hold, result

START = datetime(2026, 5, 1, 10, tzinfo=UTC)
ILL = Problem("gcu.enflame.com/unhealthy", "health", "efsmi says no")


def run_here(work: Callable[[], None]) -> None:
    """In place of a thread."""
    work()


class Claims:
    """Claims by name, and their status as applied. `refusals` are raised by patches of the claim
    of that name; those of the `held` names wait for their event."""

    def __init__(self) -> None:
        self.stored: dict[str, Object] = {}
        self.refusals: dict[str, KubeError] = {}
        self.held: dict[str, threading.Event] = {}
        self.holds = threading.Event()
        self.gets: list[str] = []
        self.patches: list[str] = []
        self.on_success: Callable[[], None] = lambda: None

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        assert resource == RESOURCE_CLAIMS
        self.gets.append(name)
        if name not in self.stored:
            raise NotFound(f"no claim {name}")
        return deepcopy(self.stored[name])

    def patch(self, resource: Resource, name: str, body: Object, **how: Any) -> Object:
        assert (how["patch_type"], how["subresource"]) == (PatchType.APPLY, "status")
        assert body["metadata"]["uid"] == self.stored[name]["metadata"]["uid"]
        self.patches.append(name)
        if name in self.held:
            self.holds.set()
            assert self.held[name].wait(60)
        if name in self.refusals:
            raise self.refusals[name]
        status = self.stored[name]["status"]
        others = [each for each in status.get("devices", ()) if "gcu" not in each["driver"]]
        status["devices"] = [*others, *deepcopy(body["status"]["devices"])]
        self.on_success()
        return self.stored[name]


def played_context(
    api: object,
    ledger: Callable[[], Ledger],
    cards: SimpleNamespace,
    waiting: Mapping[str, Waiting],
    refused: list[ClaimRef],
) -> AgentContext:
    """What the writer reads. `refused` takes the claims whose status can never be written."""
    events = SimpleNamespace(status_rejected=lambda claim, _note: refused.append(claim))
    played = SimpleNamespace(
        api=api,
        journal=SimpleNamespace(snapshot=ledger),
        cards=cards,
        tables=SimpleNamespace(table=lambda _: None),
        failures=SimpleNamespace(waiting=lambda: waiting),
        event_reporter=events,
    )
    return cast("AgentContext", played)


class Rig:
    """A writer whose thread is the test's own: `run` ends after `waits`. Each look at the clock
    comes a second after the one before it."""

    def __init__(self) -> None:
        self.api = Claims()
        self.ledger = Ledger()
        cards = {address: card(address, minor) for minor, address in enumerate(CARDS)}
        self.cards = SimpleNamespace(latest=cards)
        self.waiting: dict[str, Waiting] = {}
        self.refused: list[ClaimRef] = []
        self.journal_fails = False
        self.waits: list[float] = []
        self.on_wait: Callable[[], bool] = lambda: True
        self.monotonic = 0.0
        self._seconds = 0
        self.statuses = self.another(
            now=self._now,
            clock=lambda: self.monotonic,
            wait=self._wait,
            spawn=run_here,
        )

    def another(self, **keys: Any) -> ClaimStatuses:
        """A writer of its own for the same claims and cards."""
        context = played_context(self.api, self._ledger, self.cards, self.waiting, self.refused)
        return ClaimStatuses(context, **keys)

    def prepared(
        self,
        name: str,
        at: int,
        kind: ClaimStep = ClaimStep.PREPARE_COMPLETED,
        *,
        namespace: str = "team",
    ) -> ClaimRef:
        """The claim is allocated to a whole card, and so far in the journal."""
        made = claim(name, result(at))
        made["metadata"]["namespace"] = namespace
        self.api.stored.setdefault(name, made)
        ref = ClaimRef.of(self.api.stored[name])
        self.hold(ref, hold(at), kind=kind)
        return ref

    def hold(
        self, ref: ClaimRef, *holds: PreparedDevice, kind: ClaimStep = ClaimStep.PREPARE_COMPLETED
    ) -> None:
        self.ledger = self.ledger.apply(record(kind, ref, holds))

    def told(self, name: str) -> list[Object]:
        found: list[Object] = self.api.stored[name]["status"].get("devices", [])
        return found

    def ready(self, name: str) -> tuple[str, str]:
        """Status and time of the one condition."""
        [device] = self.told(name)
        [condition] = device["conditions"]
        return condition["status"], condition["lastTransitionTime"]

    def run(self) -> list[float]:
        self.statuses.wake()
        self.statuses.run()
        return self.waits

    def _ledger(self) -> Ledger:
        if self.journal_fails:
            raise JournalError("the disk is gone")
        return self.ledger

    def _now(self) -> datetime:
        self._seconds += 1
        return START + timedelta(seconds=self._seconds)

    def _wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return self.on_wait()
