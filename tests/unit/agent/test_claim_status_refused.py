"""When a claim cannot be told: others do not wait for it, and it is tried ever more slowly."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from dra_driver.agent.dra.claim_status import ClaimStatuses
from dra_driver.kube.errors import Invalid, KubeError, TooManyRequests, Unavailable
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.node.checkpoint.records import ClaimStep
from dra_driver.node.claims.failures import Waiting
from tests.unit.agent.claim_statuses import ILL, Rig
from tests.unit.node.world import CARDS, card, claim, hold, result

AWAY = Unavailable("away")


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.parametrize(
    "error",
    [
        Invalid("status.devices: not allocated", status=422),
        Unavailable("failed calling webhook", status=500),
    ],
    ids=["refused", "failed by a webhook that is away"],
)
def test_a_claim_that_fails_keeps_no_other_waiting(rig: Rig, error: KubeError) -> None:
    for at, name in enumerate("abc"):
        rig.prepared(name, at)
    rig.api.refusals["a"] = error
    soonest = rig.statuses.write()
    assert rig.api.patches == ["a", "b", "c"]
    assert soonest is not None
    assert 0.5 <= soonest <= 1.0
    rig.prepared("d", 3)
    del rig.api.refusals["a"]
    rig.statuses.write()
    assert rig.api.patches == ["a", "b", "c", "d"], "a is not due yet"
    rig.monotonic = soonest
    assert rig.statuses.write() is None
    assert rig.api.patches == ["a", "b", "c", "d", "a"]


@pytest.mark.parametrize("error", [Invalid("no", status=422), AWAY], ids=["refused", "away"])
def test_what_fails_for_ever_is_tried_ever_more_slowly(rig: Rig, error: KubeError) -> None:
    """However often others wake the writer."""
    rig.prepared("a", 0)
    rig.api.refusals["a"] = error
    for second in range(600):
        rig.monotonic = float(second)
        rig.statuses.write()
    # 1, 2, 4 … 60 s, each shortened by up to half at random.
    assert 14 <= len(rig.api.patches) <= 26


def test_a_claim_whose_allocation_any_patch_would_change_is_not_tried_again(rig: Rig) -> None:
    """Its opaque parameters were written with white space, say."""
    ref = rig.prepared("a", 0)
    words = "status.allocation: Invalid value: {…}: field is immutable"
    rig.api.refusals["a"] = Invalid(f'ResourceClaim "a" is invalid: {words}', status=422)
    assert rig.statuses.write() is None
    rig.prepared("b", 1)
    rig.monotonic = 1000.0
    assert rig.statuses.write() is None
    assert rig.api.patches == ["a", "b"]
    assert rig.refused == [ref], "told once"


def test_news_that_are_no_news_any_more_are_not_waited_for(rig: Rig) -> None:
    """A card that fell ill while its claim's status was refused, and is well again."""
    rig.prepared("a", 0)
    rig.statuses.write()
    well = rig.cards.latest[CARDS[0]]
    rig.cards.latest[CARDS[0]] = replace(well, problems=(ILL,))
    rig.api.refusals["a"] = Invalid("no", status=422)
    assert rig.statuses.write() is not None
    rig.cards.latest[CARDS[0]] = well
    rig.monotonic = 100.0
    assert rig.statuses.write() is None
    assert rig.api.patches == ["a", "a"]


def test_a_claim_that_ended_is_not_tried_any_more(rig: Rig) -> None:
    ref = rig.prepared("a", 0)
    rig.api.refusals["a"] = Invalid("no", status=422)
    assert rig.statuses.write() is not None
    rig.hold(ref, kind=ClaimStep.FORGOTTEN)
    assert rig.statuses.write() is None


def test_the_thread_comes_back_to_a_refused_claim_by_itself(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.prepared("b", 1)
    rig.api.refusals["a"] = Invalid("no", status=422)
    statuses = rig.another()
    told = threading.Event()

    def on_success() -> None:
        if rig.api.patches[-1] == "a":
            told.set()
        rig.api.refusals.clear()

    rig.api.on_success = on_success
    statuses.start()
    assert told.wait(60)
    assert rig.api.patches == ["a", "b", "a"]
    statuses.stop(10)
    assert not statuses.is_alive()


@pytest.mark.parametrize(
    "error",
    [Unavailable("away"), Unavailable("stopping", status=503), TooManyRequests("slower")],
    ids=str,
)
def test_a_server_that_is_away_is_not_asked_for_each_claim(rig: Rig, error: KubeError) -> None:
    for at, name in enumerate("abc"):
        rig.prepared(name, at)
    rig.api.refusals["b"] = error
    assert rig.statuses.write() is not None
    assert rig.api.patches == ["a", "b"]
    rig.statuses.write()
    assert rig.api.patches == ["a", "b"], "b is not due yet"


def test_a_success_ends_the_back_off(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.api.refusals["a"] = AWAY
    for _ in range(6):
        rig.monotonic += rig.statuses.write() or 0.0
    del rig.api.refusals["a"]
    assert rig.statuses.write() is None
    rig.cards.latest[CARDS[0]] = card(CARDS[0], 7)
    rig.api.refusals["a"] = AWAY
    soonest = rig.statuses.write()
    assert soonest is not None
    assert 0.5 <= soonest <= 1.0


def test_a_server_is_not_asked_before_it_wants_to(rig: Rig) -> None:
    rig.prepared("a", 0)
    rig.api.refusals["a"] = TooManyRequests("slower", retry_after=7.0)
    assert rig.statuses.write() == 7.0


@pytest.mark.parametrize("end", ["failed calling webhook", "no answer", ""])
def test_a_webhook_that_holds_up_one_namespace_delays_no_other(rig: Rig, end: str) -> None:
    """It takes half a minute for each claim, and then fails or lets it pass."""
    statuses, threads = threaded(rig)
    rig.prepared("held", 0, namespace="other")
    rig.prepared("held too", 1, namespace="other")
    rig.prepared("a", 2)
    rig.api.held["held"] = over = threading.Event()
    if end:
        status = 500 if "webhook" in end else 0
        rig.api.refusals["held"] = Unavailable(end, status=status)
    statuses.write()
    threads["team"].join(60)
    assert rig.api.holds.wait(60)
    assert sorted(rig.api.patches) == ["a", "held"]
    rig.prepared("b", 3)
    statuses.write()
    threads["team"].join(60)
    assert sorted(rig.api.patches) == ["a", "b", "held"], "the namespace is tried once at a time"
    over.set()
    threads["other"].join(60)
    assert ("held too" in rig.api.patches) is (end != "no answer")


def test_so_many_namespaces_are_written_at_a_time(rig: Rig) -> None:
    statuses, threads = threaded(rig)
    over = threading.Event()
    for at in range(9):
        rig.hold(rig.prepared(f"c{at}", 0, namespace=f"n{at}"), hold(0))
        rig.api.held[f"c{at}"] = over
    statuses.write()
    assert statuses.write() is None
    assert [*threads] == [f"n{at}" for at in range(8)]
    over.set()
    for thread in [*threads.values()]:
        thread.join(60)
    statuses.write()
    threads["n8"].join(60)
    assert sorted(rig.api.patches) == [f"c{at}" for at in range(9)]


def threaded(rig: Rig) -> tuple[ClaimStatuses, dict[str, threading.Thread]]:
    """A writer with a thread for each namespace, the last one of each by its name."""
    threads: dict[str, threading.Thread] = {}

    def spawn(work: Callable[[], None]) -> None:
        assert isinstance(work, partial)
        thread = threads[work.args[0]] = threading.Thread(target=work)
        thread.start()

    return rig.another(spawn=spawn), threads


def test_a_journal_that_cannot_be_read_is_tried_again(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.prepared("a", 0)
    rig.journal_fails = True
    rig.on_wait = lambda: len(rig.waits) == 2
    first, second = rig.run()
    assert 0.5 <= first <= 1.0 <= second <= 2.0
    assert {each.levelname for each in caplog.records} == {"WARNING"}


def test_a_claim_that_waits_for_its_card_is_told_why(rig: Rig) -> None:
    rig.api.stored["one"] = claim("one", result(0))
    ref = ClaimRef.of(rig.api.stored["one"])
    rig.waiting[ref.uid] = Waiting(ref, (hold(0),), hold(0).device_name, "efsmi said no", 3, 0.0)
    rig.statuses.write()
    [device] = rig.told("one")
    [condition] = device["conditions"]
    assert (condition["reason"], condition["message"]) == ("PrepareFailed", "efsmi said no")
    rig.waiting.clear()
    rig.prepared("one", 0)
    rig.statuses.write()
    assert rig.ready("one")[0] == "True"
