"""The ServiceAccount whose annotations say whether limits become claims: admission policies have it
as parameters, and the webhook reads it. The chart creates it, without rights; the leader writes the
annotations. docs/adr/0029 says why it is no ConfigMap."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from controller.legacy_resources.decision import LimitsDecision
from dra_driver.kube.api import Api, Change
from dra_driver.kube.resources import SERVICE_ACCOUNTS
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER

TRANSLATE: Final = f"{DRIVER}/limits-become-claims"
REASON: Final = f"{DRIVER}/limits-reason"
_YES, _NO = "true", "false"


def annotations_of(decision: LimitsDecision) -> Mapping[str, str]:
    """How it is written."""
    return {TRANSLATE: _YES if decision.translate else _NO, REASON: decision.reason}


class DecisionCache:
    """The handler of a watch of that ServiceAccount alone. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._annotations: Mapping[str, str] = {}
        self._is_synced = False

    @property
    def is_synced(self) -> bool:
        """Whether it was read, or is known to be missing."""
        with self._lock:
            return self._is_synced

    @property
    def annotations(self) -> Mapping[str, str]:
        """Of the decision alone."""
        with self._lock:
            return self._annotations

    @property
    def translates(self) -> bool | None:
        """None where nothing was decided yet."""
        return {_YES: True, _NO: False}.get(self.annotations.get(TRANSLATE, ""))

    def on_replace(self, items: Sequence[Object]) -> None:
        with self._lock:
            self._annotations = _decision_in(items[0]) if items else {}
            self._is_synced = True

    def on_event(self, change: Change, obj: Object) -> None:
        with self._lock:
            self._annotations = {} if change is Change.DELETED else _decision_in(obj)


def _decision_in(obj: Object) -> Mapping[str, str]:
    written = obj["metadata"].get("annotations") or {}
    return {name: written[name] for name in (TRANSLATE, REASON) if name in written}


def reflector(api: Api, namespace: str, name: str, cache: DecisionCache) -> Reflector:
    """Watches the one ServiceAccount, for which RBAC wants its name as a field selector."""
    selector = f"metadata.name={name}"
    return Reflector(api, SERVICE_ACCOUNTS, cache, namespace=namespace, field_selector=selector)
