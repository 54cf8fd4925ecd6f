"""The API server as the agent's parts want to see it."""

from __future__ import annotations

from collections.abc import Sequence

from dra_driver.agent.publisher import Publisher
from dra_driver.kube.api import Api, Change
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claim import Object


class OwnSlices:
    """Tells the publisher when a slice of ours is not as it was written."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def on_replace(self, items: Sequence[Object]) -> None:
        del items  # whatever they are, the publisher compares them all
        self._publisher.wake()

    def on_event(self, change: Change, obj: Object) -> None:
        spec = None if change is Change.DELETED else obj["spec"]
        self._publisher.slice_changed(obj["metadata"]["name"], spec)


class ApiReader:
    """The node room's reading of the API server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def get_claim(self, namespace: str, name: str) -> Object:
        return self._api.get(RESOURCE_CLAIMS, name, namespace=namespace)

    def get_pod(self, namespace: str, name: str) -> Object:
        return self._api.get(PODS, name, namespace=namespace)
