"""How the agent's parts see each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dra_driver.kube.api import Api
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.kubelet_api.handler import ClaimHandler, Prepared
from dra_driver.model.claim import ClaimRef, Object
from dra_driver.model.errors import GcuError


class ApiReader:
    """Claims and pods, each read when it is needed: the agent may not list them."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def get_claim(self, namespace: str, name: str) -> Object:
        return self._api.get(RESOURCE_CLAIMS, name, namespace=namespace)

    def get_pod(self, namespace: str, name: str) -> Object:
        return self._api.get(PODS, name, namespace=namespace)


class Followed:
    """A claim handler; `after` is called when a call has been handled."""

    def __init__(self, handler: ClaimHandler, after: Callable[[], None]) -> None:
        self._handler = handler
        self._after = after

    def prepare(
        self, refs: Sequence[ClaimRef], *, awaited: Callable[[], bool]
    ) -> Mapping[str, Prepared | GcuError]:
        answers = self._handler.prepare(refs, awaited=awaited)
        self._after()
        return answers

    def unprepare(self, refs: Sequence[ClaimRef]) -> Mapping[str, GcuError | None]:
        answers = self._handler.unprepare(refs)
        self._after()
        return answers
