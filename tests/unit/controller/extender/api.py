"""The API server as the extender's parts write to it, with refusals on command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controller.extender.limit_request import concerns_us
from dra_driver.kube.resources import BINDINGS, PODS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError
from tests.fake_api.api import FakeApi
from tests.fake_api.faults import Call
from tests.fake_api.store import Key


class PodApi(FakeApi):
    """A server with pods. `refusals` has errors by verb, each raised once; an error of `late` is
    raised after a pod was bound. A pod that is patched is there: tests need not make it."""

    def __init__(self, *pods: Object) -> None:
        super().__init__(*((PODS, each) for each in pods))
        self.refusals: dict[str, list[GcuError]] = {}
        self.late: list[GcuError] = []

    @property
    def bindings(self) -> list[Object]:
        return [
            each.body
            for each in self.faults.calls
            if each.resource == BINDINGS and isinstance(each.body, dict)
        ]

    @property
    def patches(self) -> list[tuple[str, Any]]:
        return [(each.name, each.body) for each in self.faults.calls if each.verb == "patch"]

    def pod(self, name: str) -> Object:
        return self.get(PODS, name, namespace="default")

    def watched(self, name: str) -> Object:
        """The pod as its watch would bring it."""
        found = self.store.find(Key(PODS, "default", name))
        assert found is not None
        assert concerns_us(found)
        return found

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        made = super().create(resource, body, dry_run=dry_run)
        if self.late:
            raise self.late.pop(0)
        return made

    def patch(
        self,
        resource: Resource,
        name: str,
        body: Object | Sequence[Object],
        *,
        namespace: str = "",
        **how: Any,
    ) -> Object:
        if self.store.find(Key(resource, namespace, name)) is None and isinstance(body, dict):
            metadata = {"name": name, "namespace": namespace, "uid": body["metadata"]["uid"]}
            self.put(resource, {"metadata": metadata, "spec": {}})
        return super().patch(resource, name, body, namespace=namespace, **how)

    def _begin(self, verb: str, *of: Any, **how: Any) -> Call:
        if self.refusals.get(verb):
            raise self.refusals[verb].pop(0)
        return super()._begin(verb, *of, **how)
