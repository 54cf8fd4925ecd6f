"""Calls that nobody waits for any more take no further thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import grpc
import pytest

from dra_driver.kubelet_api.calls import Calls
from dra_driver.kubelet_api.handler import Prepared
from dra_driver.kubelet_api.running import RunningCalls
from dra_driver.model.claim import ClaimRef
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError

ONE = ClaimRef("team", "one", "uid-1")
TWO = ClaimRef("team", "two", "uid-2")


class Caller:
    """A call's context: active until it gives up."""

    def __init__(self) -> None:
        self.active = True

    def is_active(self) -> bool:
        return self.active

    def add_callback(self, _: Callable[[], None]) -> bool:
        return self.active

    @property
    def context(self) -> grpc.ServicerContext:
        return cast("grpc.ServicerContext", self)


@pytest.fixture
def caller() -> Caller:
    return Caller()


@pytest.mark.parametrize(
    ("active", "asked", "given_up"),
    [
        pytest.param(True, [ONE], None, id="both are waited for"),
        pytest.param(False, [ONE], ONE, id="given up"),
        pytest.param(False, [TWO, ONE], ONE, id="given up, among others"),
        pytest.param(False, [TWO], None, id="another claim"),
    ],
)
def test_beside_a_running_call(
    caller: Caller, active: bool, asked: Sequence[ClaimRef], given_up: ClaimRef | None
) -> None:
    running = RunningCalls()
    with running.entered([ONE], caller.context):
        caller.active = active
        with running.entered(asked, Caller().context) as found:
            assert found == given_up


def test_what_has_ended_is_forgotten(caller: Caller) -> None:
    running = RunningCalls()
    with pytest.raises(KeyError), running.entered([ONE, TWO], caller.context):
        raise KeyError
    caller.active = False
    with running.entered([ONE, TWO], Caller().context) as found:
        assert found is None
    assert running._callers == {}


class Hanging:
    """Works on claim ONE until it may go on."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def prepare(
        self, refs: Sequence[ClaimRef], *, awaited: Callable[[], bool]
    ) -> Mapping[str, Prepared | GcuError]:
        if ONE in refs:
            self.begun.set()
            assert self.go.wait(60)
        return {ref.uid: () for ref in refs}

    def unprepare(self, refs: Sequence[ClaimRef]) -> Mapping[str, GcuError | None]:
        return {ref.uid: None for ref in refs}


def test_a_repeated_call_is_refused_until_the_one_before_has_ended(caller: Caller) -> None:
    handler = Hanging()
    calls = Calls(handler, Effects())
    first = threading.Thread(target=calls.prepare, args=([ONE], caller.context))
    first.start()
    assert handler.begun.wait(60)
    caller.active = False
    assert calls.prepare([TWO], Caller().context) == {TWO.uid: ()}
    for call in (calls.prepare, calls.unprepare):
        answers = call([ONE, TWO], Caller().context)
        assert answers.keys() == {ONE.uid, TWO.uid}
        for answer in answers.values():
            assert "an earlier call for claim team/one, which was given up" in str(answer)
    handler.go.set()
    first.join(60)
    assert calls.unprepare([ONE], Caller().context) == {ONE.uid: None}


def test_the_handler_learns_that_a_call_is_given_up(caller: Caller) -> None:
    class Asking(Hanging):
        def prepare(
            self, refs: Sequence[ClaimRef], *, awaited: Callable[[], bool]
        ) -> Mapping[str, Prepared | GcuError]:
            before, caller.active = awaited(), False
            assert (before, awaited()) == (True, False)
            return {ref.uid: () for ref in refs}

    assert Calls(Asking(), Effects()).prepare([ONE], caller.context) == {ONE.uid: ()}
