"""A reflector of what a user may read: all namespaces, one of them, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from controller.informers.decoders import decoders
from controller.informers.optional_watch import OptionalHandler, OptionalReflector
from dra_driver.kube.api import Api
from dra_driver.kube.decode import WHOLE
from dra_driver.kube.errors import Forbidden, KubeError
from dra_driver.kube.resources import (
    DEVICE_TAINT_RULES_V1BETA2,
    Resource,
)
from dra_driver.util.backoff import Backoff

LONGEST_PAUSE: Final = 3.0
"""Seconds between two attempts while the API server does not answer: somebody is waiting."""

Unreadable = Callable[[str | None], str]
"""A sentence about what is not seen: the kind cannot be listed in all namespaces, or not even in
the namespace that is given. Empty where there is nothing to say."""


class ReadableReflector(OptionalReflector):
    """Follows all objects of a kind; if the user may not list them, those of `namespace`; if he
    may not list these either, none. `missing` says what is not seen."""

    def __init__(
        self,
        api: Api,
        versions: Sequence[Resource],
        handler: OptionalHandler,
        unreadable: Unreadable,
        *,
        namespace: str,
        field_selector: str = "",
    ) -> None:
        older = {DEVICE_TAINT_RULES_V1BETA2: decoders()[DEVICE_TAINT_RULES_V1BETA2]}
        super().__init__(
            api,
            versions,
            handler,
            decoder=WHOLE,
            decoders=older,
            field_selector=field_selector,
            backoff=Backoff(longest=LONGEST_PAUSE),
        )
        self._own_namespace = namespace
        self._is_namespaced = versions[0].namespaced
        self._unreadable = unreadable
        self.missing = ""
        self.unwatched = ""
        """Says that the kind can be listed and not watched; it is listed now and then."""

    def _list(self) -> None:
        self.namespace = ""
        try:
            super()._list()
        except Forbidden:
            self.missing = self._unreadable(None)
            if not self._is_namespaced:
                raise
            self._list_namespace()
        else:
            self.missing = ""

    def _list_namespace(self) -> None:
        self.namespace = self._own_namespace
        try:
            super()._list()
        except Forbidden:
            self.missing = self._unreadable(self.namespace)
            raise

    def _on_failure(self, error: KubeError) -> float:
        if isinstance(error, Forbidden) and self._version:
            plural = self._versions[0].plural
            self.unwatched = f"you may not watch {plural}: they are listed again now and then"
        return super()._on_failure(error)

    def _follow_nothing(self, error: KubeError) -> None:
        super()._follow_nothing(error)
        self.problem = None  # `missing` says it
