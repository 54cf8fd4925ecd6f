"""An API client whose requests are counted, and whose server can be away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dra_driver.kube.client import Client
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.resources import Resource

_WRITES = ("create", "replace", "patch", "delete", "add_metadata")


class Tapped:
    """Plays `Api` with a real client behind it; `requests` are ``<verb> <plural>``."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.requests: list[str] = []
        self.away = False

    def writes(self, plural: str) -> list[str]:
        """The verbs of all writes of such objects, dry runs included."""
        found = (request.split() for request in self.requests)
        return [verb for verb, *kind in found if verb in _WRITES and kind == [plural]]

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._client, verb)

        def call(*args: Any, **kwargs: Any) -> Any:
            kinds = [each.plural for each in args[:1] if isinstance(each, Resource)]
            self.requests.append(" ".join([verb, *kinds]))
            if self.away:
                raise Unavailable(f"the API server did not answer {self.requests[-1]}")
            return method(*args, **kwargs)

        return call
