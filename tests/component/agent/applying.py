"""The fake API server for an agent, which applies the fields that it owns."""

from __future__ import annotations

from typing import Any

from dra_driver.kube.api import PatchType
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object
from tests.fake_api.api import FakeApi


class Applying:
    """A client of the server. An apply is a merge: of an agent it has the whole list
    ``status.devices``, and no version, so it conflicts with no other writer."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api.client("gcu-dra-agent/1")

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.api, verb)

    def patch(self, resource: Resource, name: str, body: Object, **how: Any) -> Object:
        if how.pop("patch_type", PatchType.MERGE) is PatchType.APPLY:
            del how["field_manager"]
        return self.api.patch(resource, name, body, **how)
