"""What a test lets go wrong: calls that are refused, that are under way for long, and whose
answers come late."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from dra_driver.kube.errors import Unavailable
from dra_driver.kube.resources import Resource
from dra_driver.model.errors import GcuError

_PATIENCE: Final = 60.0
_FOR_EVER: Final = 10**9


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it came: `verb` is the method of `Api`, `user` the user agent."""

    verb: str
    resource: Resource
    name: str = ""
    subresource: str = ""
    user: str = ""
    body: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Which:
    """The calls that are meant: all, or those of these verbs, of that kind, of that user."""

    verbs: tuple[str, ...] = ()
    resource: Resource | None = None
    subresource: str | None = None
    user: str = ""

    def has(self, call: Call) -> bool:
        return (
            (not self.verbs or call.verb in self.verbs)
            and self.resource in {None, call.resource}
            and self.subresource in {None, call.subresource}
            and self.user in {"", call.user}
        )


@dataclass(slots=True, eq=False)
class _Refusal:
    error: GcuError
    which: Which
    times: int
    done: bool


@dataclass(slots=True, eq=False)
class Held:
    """Calls that have been sent, and reach the server later: `arrived` is set by the first."""

    which: Which
    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Return when there is one."""
        assert self.arrived.wait(_PATIENCE), f"no call like {self.which}"


class Faults:
    """Shared by all clients of a server; `calls` are all calls so far."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._refusals: list[_Refusal] = []
        self._held: list[Held] = []
        self._late: list[Held] = []
        self._lock = threading.Lock()

    def refuse(
        self,
        error: GcuError,
        *verbs: str,
        resource: Resource | None = None,
        times: int = 1,
        done: bool = False,
    ) -> None:
        """Answer the next so many calls with the error. A call is `done` although it is refused if
        its answer was lost. An error without a status is no answer."""
        self._refusals.append(_Refusal(error, Which(verbs, resource), times, done))

    @contextmanager
    def away(self, user: str, resource: Resource | None = None) -> Iterator[None]:
        """Until the end no call of the user is answered, or none for that kind."""
        refusal = _Refusal(
            Unavailable("no answer"), Which((), resource, None, user), _FOR_EVER, done=False
        )
        self._refusals.append(refusal)
        try:
            yield
        finally:
            self._refusals.remove(refusal)

    @contextmanager
    def held(
        self, verb: str, resource: Resource, *, subresource: str = "", user: str = ""
    ) -> Iterator[Held]:
        """Until the end such calls do not reach the server."""
        with _among(self._held, Held(Which((verb,), resource, subresource, user))) as found:
            yield found

    @contextmanager
    def late(self, verb: str, resource: Resource, *, user: str = "") -> Iterator[Held]:
        """Until the end answers to such calls wait; of a watch, its events."""
        with _among(self._late, Held(Which((verb,), resource, None, user))) as found:
            yield found

    def meet(self, call: Call) -> None:
        """A call has come. Raises what it is refused with."""
        _wait(self._held, call)
        with self._lock:
            self.calls.append(call)
        self._raise(call, done=False)

    def answer(self, call: Call) -> None:
        """The call was done. Raises the error of an answer that is lost."""
        self._raise(call, done=True)
        _wait(self._late, call)

    def _raise(self, call: Call, *, done: bool) -> None:
        with self._lock:
            for each in [*self._refusals]:
                if each.done is done and each.which.has(call):
                    each.times -= 1
                    if not each.times:
                        self._refusals.remove(each)
                    raise each.error


@contextmanager
def _among(others: list[Held], held: Held) -> Iterator[Held]:
    others.append(held)
    try:
        yield held
    finally:
        others.remove(held)
        held.released.set()


def _wait(held: list[Held], call: Call) -> None:
    for each in [*held]:
        if each.which.has(call):
            each.arrived.set()
            assert each.released.wait(_PATIENCE), f"{call} was held for ever"
