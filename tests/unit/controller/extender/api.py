"""The port `Api` as far as the extender calls it, with pods in memory and refusals on command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from controller.extender.limit_request import concerns_us
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Conflict, NotFound
from dra_driver.kube.resources import BINDINGS, PODS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError


class PodApi:
    """A Binding binds the pod and gives it its annotations, as the API server does. `refusals`
    has errors by verb, each raised once; an error of `late` is raised after the write was made."""

    def __init__(self, *pods: Object) -> None:
        self.pods = {each["metadata"]["name"]: each for each in pods}
        self.refusals: dict[str, list[GcuError]] = {}
        self.late: list[GcuError] = []
        self.bindings: list[Object] = []
        self.patches: list[tuple[str, Object]] = []

    def api(self) -> Api:
        return cast("Api", self)

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        self._refuse("get")
        assert resource is PODS
        if name not in self.pods:
            raise NotFound(f"pod {namespace}/{name} is not there")
        return self.pods[name]

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        self._refuse("create")
        assert resource is BINDINGS
        self.bindings.append(body)
        pod = self.pods[body["metadata"]["name"]]
        if pod["spec"].get("nodeName"):
            raise Conflict("the pod is bound already")
        metadata = pod["metadata"]
        notes = {**metadata.get("annotations", {}), **body["metadata"]["annotations"]}
        self.pods[metadata["name"]] = {
            **pod,
            "metadata": {**metadata, "annotations": notes},
            "spec": {**pod["spec"], "nodeName": body["target"]["name"]},
        }
        if self.late:
            raise self.late.pop(0)
        return {}

    def patch(
        self, resource: Resource, name: str, body: Object | Sequence[Object], **more: Any
    ) -> Object:
        self._refuse("patch")
        assert resource is PODS
        assert isinstance(body, dict)
        self.patches.append((name, body))
        return {}

    def watched(self, name: str) -> Object:
        """The pod as its watch would bring it."""
        assert concerns_us(self.pods[name])
        return self.pods[name]

    def _refuse(self, verb: str) -> None:
        if self.refusals.get(verb):
            raise self.refusals[verb].pop(0)
