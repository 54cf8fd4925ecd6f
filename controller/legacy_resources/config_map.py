"""The ConfigMap that says whether limits become claims: admission policies have it as parameters,
and the webhook reads it. The chart creates it without data; the leader writes these."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from controller.legacy_resources.decision import LimitsDecision
from dra_driver.kube.api import Api, Change
from dra_driver.kube.resources import CONFIG_MAPS
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object

TRANSLATE: Final = "translate"
REASON: Final = "reason"
_YES, _NO = "true", "false"


def data_of(decision: LimitsDecision) -> Mapping[str, str]:
    """The ConfigMap's data."""
    return {TRANSLATE: _YES if decision.translate else _NO, REASON: decision.reason}


class DecisionCache:
    """The handler of a watch of that ConfigMap alone. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._data: Mapping[str, str] = {}
        self._is_synced = False

    @property
    def is_synced(self) -> bool:
        """Whether it was read, or is known to be missing."""
        with self._lock:
            return self._is_synced

    @property
    def data(self) -> Mapping[str, str]:
        with self._lock:
            return self._data

    @property
    def translates(self) -> bool | None:
        """None where nothing was decided yet."""
        return {_YES: True, _NO: False}.get(self.data.get(TRANSLATE, ""))

    def on_replace(self, items: Sequence[Object]) -> None:
        with self._lock:
            self._data = (items[0].get("data") or {}) if items else {}
            self._is_synced = True

    def on_event(self, change: Change, obj: Object) -> None:
        with self._lock:
            self._data = {} if change is Change.DELETED else obj.get("data") or {}


def reflector(api: Api, namespace: str, name: str, cache: DecisionCache) -> Reflector:
    """Watches the one ConfigMap, for which RBAC wants its name as a field selector."""
    return Reflector(
        api, CONFIG_MAPS, cache, namespace=namespace, field_selector=f"metadata.name={name}"
    )
