"""What each claim of a call is answered, how calls go beside each other, and what becomes of those
that were given up."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from dra_driver.kubelet_api.dra.service import ClaimHandler, DraServicer
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import Prepared
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import GcuError, Refused
from tests.unit.kubelet_api.callers import Caller, Observer, Passing, prepare, unprepare
from tests.unit.kubelet_api.dra.handler import ONE, TWO, Handler

DONE: dict[str, Prepared | GcuError] = {ONE.uid: (), TWO.uid: ()}
WELL = dict.fromkeys(DONE, "")


class Hanging(Handler):
    """Works on claim ONE until it may go on."""

    def __init__(self) -> None:
        super().__init__(prepared=DONE, unprepared=dict.fromkeys(DONE))
        self.begun, self.go = threading.Event(), threading.Event()

    def prepare(
        self, refs: Sequence[ClaimRef], *, is_cancelled: Callable[[], bool]
    ) -> Mapping[str, Prepared | GcuError]:
        if ONE in refs:
            self.begun.set()
            assert self.go.wait(60)
        return super().prepare(refs, is_cancelled=is_cancelled)


def service(handler: ClaimHandler, *, at_a_time: int = 8, patience: float = 5.0) -> DraServicer:
    return DraServicer(handler, Observer(), Effects(), at_a_time=at_a_time, patience=patience)


@pytest.mark.parametrize(
    ("answer", "first", "second"),
    [
        pytest.param(
            {ONE.uid: (), TWO.uid: Refused("held", remedy="wait")},
            "",
            "held; wait",
            id="one claim fails",
        ),
        pytest.param(
            {ONE.uid: ()}, "", "claim team/two got no result", id="a claim without result"
        ),
        pytest.param(
            GcuError("the journal is lost"),
            "the journal is lost",
            "the journal is lost",
            id="the call fails",
        ),
        pytest.param(DONE | {"uid-3": ()}, "", "", id="no claim that was not asked for"),
    ],
)
def test_every_claim_gets_its_own_result(
    answer: Mapping[str, Prepared | GcuError] | Exception, first: str, second: str
) -> None:
    assert prepare(service(Handler(answer)), [ONE, TWO]) == {ONE.uid: first, TWO.uid: second}


def test_a_bug_is_told_and_leaves_its_trace_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    answers = prepare(service(Handler(ZeroDivisionError("oops"))), [ONE, TWO])
    assert answers == dict.fromkeys(
        DONE,
        "internal error of the agent: ZeroDivisionError('oops'); "
        "report it with the stack trace in its log",
    )
    (traced,) = [record for record in caplog.records if record.exc_info]
    assert traced.levelno == logging.ERROR


@pytest.mark.parametrize(
    ("active", "asked", "refused"),
    [
        pytest.param(True, [ONE], False, id="both are waited for"),
        pytest.param(False, [ONE], True, id="given up"),
        pytest.param(False, [TWO, ONE], True, id="given up, among others"),
        pytest.param(False, [TWO], False, id="another claim"),
    ],
)
def test_beside_a_running_call(active: bool, asked: list[ClaimRef], refused: bool) -> None:
    handler, caller = Hanging(), Caller()
    claims = service(handler)
    first = threading.Thread(target=prepare, args=(claims, [ONE], caller))
    first.start()
    assert handler.begun.wait(60)
    caller.active = active
    answers = unprepare(claims, asked)
    assert answers.keys() == {ref.uid for ref in asked}
    for answer in answers.values():
        assert bool(answer) is refused
        if refused:
            assert "an earlier call for claim team/one, which was given up" in answer
    handler.go.set()
    first.join(60)
    assert prepare(claims, [ONE]) == {ONE.uid: ""}


def test_what_has_ended_is_forgotten() -> None:
    caller = Caller()
    claims = service(Handler(DONE, KeyError()))
    for answer in unprepare(claims, [ONE, TWO], caller).values():
        assert "internal error of the agent: KeyError" in answer
    caller.active = False
    assert prepare(claims, [ONE, TWO]) == WELL


def test_the_handler_learns_that_a_call_is_given_up() -> None:
    caller = Caller()

    class Asking(Handler):
        def prepare(
            self, refs: Sequence[ClaimRef], *, is_cancelled: Callable[[], bool]
        ) -> Mapping[str, Prepared | GcuError]:
            before, caller.active = is_cancelled(), False
            assert (before, is_cancelled()) == (False, True)
            return DONE

    assert prepare(service(Asking()), [ONE], caller) == {ONE.uid: ""}


def test_so_many_work_at_a_time_and_the_next_when_one_has_ended() -> None:
    working: list[str] = []
    most: list[int] = []

    class Counting(Handler):
        def unprepare(self, refs: Sequence[ClaimRef]) -> Mapping[str, GcuError | None]:
            working.append(refs[0].uid)
            most.append(len(working))
            working.remove(refs[0].uid)
            return {}

    claims = service(Counting(), at_a_time=2)
    with ThreadPoolExecutor(16) as pool:
        for number in range(200):
            ref = ClaimRef("team", "many", f"uid-{number}")
            pool.submit(unprepare, claims, [ref])
    assert len(most) == 200
    assert max(most) <= 2


def test_who_is_held_up_holds_nobody_up() -> None:
    handler = Hanging()
    claims = service(handler, at_a_time=1, patience=0.05)
    hanging = threading.Thread(target=prepare, args=(claims, [ONE]))
    hanging.start()
    assert handler.begun.wait(60)
    for _ in range(2):
        assert prepare(claims, [TWO]) == {TWO.uid: ""}
        assert hanging.is_alive()
    handler.go.set()
    hanging.join(60)


def test_each_call_is_observed_and_passes_the_seam() -> None:
    observer, effects = Observer(), Passing()
    refusing = Handler(DONE, {ONE.uid: None, TWO.uid: Refused("busy")})
    claims = DraServicer(refusing, observer, effects)
    prepare(claims, [ONE])
    assert unprepare(claims, [ONE, TWO]) == {ONE.uid: "", TWO.uid: "busy"}
    assert observer.begun == ["prepare", "unprepare"]
    assert observer.ended == [("prepare", 0), ("unprepare", 1)]
    assert effects.seen == [Point.REPLY_PREPARE, Point.REPLY_UNPREPARE]


def test_a_call_for_no_claim_leaves_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    """The agent's check of its own sockets is one, every few seconds."""
    handler, observer, effects = Handler(), Observer(), Passing()
    assert prepare(DraServicer(handler, observer, effects), []) == {}
    assert (handler.asked, observer.begun, effects.seen, caplog.records) == ([], [], [], [])
