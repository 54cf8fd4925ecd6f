"""The API server as the node room wants to read it."""

from __future__ import annotations

from dra_driver.kube.api import Api
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claim import Object


class ApiReader:
    """Claims and pods, each read when it is needed: the agent may not list them."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def get_claim(self, namespace: str, name: str) -> Object:
        return self._api.get(RESOURCE_CLAIMS, name, namespace=namespace)

    def get_pod(self, namespace: str, name: str) -> Object:
        return self._api.get(PODS, name, namespace=namespace)
