"""Reads from the API server on behalf of one call of the kubelet."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object
from dra_driver.node.ports import ObjectReader
from dra_driver.util.backoff import Backoff
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

# The kubelet gives a call up after 45 s (k8s.io/kubernetes, pkg/kubelet/cm/dra/plugin), and repeats
# it 60 to 90 s later. The rest of the 45 s is for the cards.
_SECONDS: Final = 25.0

Pause = Callable[[float], None]


class RetryingReader:
    """Repeats a read when the server requests that (429, 503), after the pause in the server's
    answer. Raises the last error when the time limit is over.

    Create one for each call of the kubelet: all its reads share the time limit. Thread-safe.
    """

    def __init__(
        self, api: ObjectReader, *, clock: Clock = time.monotonic, pause: Pause = time.sleep
    ) -> None:
        self._api = api
        self._clock = clock
        self._pause = pause
        self._end = clock() + _SECONDS

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        backoff = Backoff(first=0.2, longest=5.0)
        while True:
            try:
                return self._api.get(resource, name, namespace=namespace)
            except KubeError as error:
                if error.retry_after is None:
                    raise
                wait = max(error.retry_after, backoff.next())
                if self._clock() + wait > self._end:
                    raise
                logger.warning("the read is repeated in %.1f s: %s", wait, error)
            self._pause(wait)
