"""Which cards the pods of a workload use, for policies that keep them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from controller.allocator.device import CardKey
from controller.cache.pod_index import Name

Cards = frozenset[CardKey]
_NOTHING: Final[Mapping[CardKey, int]] = MappingProxyType({})
_NO_CARDS: Final[Cards] = frozenset()


@dataclass(slots=True)
class _Workload:
    """What each of its pods uses, and by card how many of them."""

    pods: dict[Name, Cards] = field(default_factory=dict)
    users: Counter[CardKey] = field(default_factory=Counter)


class Replicas:
    """Counted when first asked for, and then kept as pods come, go and get cards: a Job of
    thousands asks once for each of them. Of workloads that nobody asks for nothing is kept."""

    def __init__(self) -> None:
        self._followed: dict[str, _Workload] = {}
        self._workloads: dict[Name, str] = {}

    def __bool__(self) -> bool:
        """Whether any workload is followed."""
        return bool(self._followed)

    def follow(self, workload: str) -> bool:
        """From now on, until its last pod is gone; whether its pods are yet to be put."""
        if workload in self._followed:
            return False
        self._followed[workload] = _Workload()
        return True

    def put(self, name: Name, workload: str | None, cards: Callable[[], Cards]) -> None:
        """The pod of that name is of the workload, None where there is no such pod, and uses these
        cards, which are asked only where the workload is followed."""
        found = self._followed.get(workload or "")
        self._take_out(name, but=workload)
        if found is None or workload is None:
            return
        found.pods[name] = cards()
        found.users.update(found.pods[name])
        self._workloads[name] = workload

    def others(self, name: Name, workload: str) -> Mapping[CardKey, int]:
        """By card, how many of the workload's pods but this one use it; until the next change."""
        found = self._followed.get(workload)
        if found is None:
            return _NOTHING
        mine = found.pods.get(name, _NO_CARDS)
        return found.users - Counter(mine) if mine else found.users

    def _take_out(self, name: Name, *, but: str | None) -> None:
        workload = self._workloads.pop(name, None)
        if workload is None:
            return
        found = self._followed[workload]
        for card in found.pods.pop(name):
            found.users[card] -= 1
            if not found.users[card]:
                del found.users[card]
        if not found.pods and workload != but:
            del self._followed[workload]
