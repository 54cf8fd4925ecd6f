"""A reflector for a kind that the API server may not serve, or may forbid."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from dra_driver.kube.api import Api
from dra_driver.kube.decode import WHOLE, Decoder
from dra_driver.kube.errors import Forbidden, KubeError, NotFound
from dra_driver.kube.resources import Resource
from dra_driver.kube.server_wait import STARTS
from dra_driver.kube.watch import Reflector, WatchHandler, ignore_restored
from dra_driver.util.background import Wait
from dra_driver.util.backoff import Backoff
from dra_driver.util.hooks import Clock, OnChange

_NONE: Final[Mapping[Resource, Decoder]] = MappingProxyType({})

logger = logging.getLogger(__name__)

RETRY: Final = 300.0
"""Seconds after which a kind that was refused is listed again: an upgrade of the server, or another
right, changes the answer."""


class OptionalHandler(WatchHandler, Protocol):
    """Is also called when the kind cannot be listed."""

    def on_not_served(self) -> None:
        """The API server does not serve the kind, or forbids the list: there are no objects."""


class OptionalReflector(Reflector):
    """Watches the first of `versions` that the server serves. `decoders` has those of versions
    that `decoder` does not decode. While a later version than the first is followed, the versions
    are tried again after each watch: an upgraded server may serve both.

    While it serves none of them, or forbids the list, `on_not_served` is called once, `synced` is
    set, and the list is tried again every `RETRY` seconds. Any other failure is handled as by a
    Reflector: the handler gets nothing before the server has answered. So is a list that is
    forbidden after an answer, for as long as a server needs to start.
    """

    def __init__(
        self,
        api: Api,
        versions: Sequence[Resource],
        handler: OptionalHandler,
        *,
        decoder: Decoder = WHOLE,
        decoders: Mapping[Resource, Decoder] = _NONE,
        field_selector: str = "",
        on_restored: OnChange = ignore_restored,
        backoff: Backoff | None = None,
        wait: Wait | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        super().__init__(
            api,
            versions[0],
            handler,
            field_selector=field_selector,
            decoder=decoder,
            on_restored=on_restored,
            backoff=backoff,
            wait=wait,
            clock=clock,
        )
        self._versions = versions
        self._decoders = {each: decoders.get(each, decoder) for each in versions}
        self._on_not_served = handler.on_not_served
        self._refusal = ""  # the last one for which the handler got an empty list
        self._forbidden_since: float | None = None

    def _list(self) -> None:
        refusals: list[KubeError] = []
        for version in self._versions:
            self.resource, self.decoder = version, self._decoders[version]
            try:
                super()._list()
            except (NotFound, Forbidden) as error:
                refusals.append(error)
            else:
                self._refusal = ""
                self._forbidden_since = None
                return
        raise refusals[0]

    def _follow(self) -> bool:
        worked = super()._follow()
        if self.resource is not self._versions[0]:
            self._version = ""
        return worked

    def _on_failure(self, error: KubeError) -> float:
        if not isinstance(error, NotFound | Forbidden):
            return super()._on_failure(error)
        if self._version:
            self._version = ""  # a watch was refused: list, and use that answer
            return 0.0
        if isinstance(error, Forbidden) and self._may_be_starting():
            return super()._on_failure(error)
        self._follow_nothing(error)
        return RETRY

    def _may_be_starting(self) -> bool:
        """Whether the server that forbids the list may have started after it had answered it."""
        now = self.clock()
        if self._forbidden_since is None:
            self._forbidden_since = now
        return self.synced.is_set() and now - self._forbidden_since < STARTS

    def _follow_nothing(self, error: KubeError) -> None:
        if str(error) == self._refusal:
            return
        self._refusal = str(error)
        plural = self._versions[0].plural
        if isinstance(error, NotFound):
            self.problem = None
            logger.info("the API server does not serve %s: going on without them", plural)
        else:
            self.problem = f"cannot follow {plural}, going on without them: {error}"
            logger.warning("%s", self.problem)
        self._on_not_served()
        self.synced.set()
