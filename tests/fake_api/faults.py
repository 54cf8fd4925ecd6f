"""What a test lets go wrong: calls that are refused, and calls whose answers come late."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object

_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it came: `verb` is the method of `Api`, `user` the user agent."""

    verb: str
    resource: Resource
    name: str = ""
    subresource: str = ""
    user: str = ""
    body: object = field(default=None, repr=False)


@dataclass(slots=True)
class _Refusal:
    error: KubeError
    verbs: tuple[str, ...]
    resource: Resource | None
    times: int
    done: bool


class Faults:
    """Shared by all clients of a server; `calls` are all calls so far."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._refusals: list[_Refusal] = []
        self._late: dict[tuple[str, Resource], threading.Event] = {}
        self._lock = threading.Lock()

    def refuse(
        self,
        error: KubeError,
        *verbs: str,
        resource: Resource | None = None,
        times: int = 1,
        done: bool = False,
    ) -> None:
        """Answer the next so many calls with the error; of these verbs, and of that kind, if they
        are given. A call is `done` although it is refused if its answer was lost."""
        self._refusals.append(_Refusal(error, verbs, resource, times, done))

    @contextmanager
    def late(self, verb: str, resource: Resource) -> Iterator[None]:
        """Until the end answers to such calls wait; of a watch, its events."""
        self._late[verb, resource] = released = threading.Event()
        try:
            yield
        finally:
            del self._late[verb, resource]
            released.set()

    def meet(self, call: Call) -> None:
        """A call has come. Raises what it is refused with."""
        with self._lock:
            self.calls.append(call)
        self._raise(call, done=False)

    def answer(self, call: Call) -> None:
        """The call was done. Raises the error of an answer that is lost."""
        self._raise(call, done=True)
        self.wait(call.verb, call.resource)

    def wait(self, verb: str, resource: Resource) -> None:
        """Return when answers of this sort are not late any more."""
        if (late := self._late.get((verb, resource))) is not None:
            assert late.wait(_PATIENCE), f"{verb} {resource.plural} stayed late"

    def writes(self, resource: Resource) -> list[Object]:
        """The bodies that were written to objects of the kind, in order."""
        return [
            each.body
            for each in self.calls
            if each.resource == resource and isinstance(each.body, dict)
        ]

    def _raise(self, call: Call, *, done: bool) -> None:
        with self._lock:
            for each in self._refusals:
                if (
                    each.done is done
                    and (not each.verbs or call.verb in each.verbs)
                    and each.resource in {None, call.resource}
                ):
                    each.times -= 1
                    if not each.times:
                        self._refusals.remove(each)
                    raise each.error
