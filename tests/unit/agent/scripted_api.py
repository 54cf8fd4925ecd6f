"""The port `Api`, refusing on command: for what no real server does at will.

What a server stores and how it answers is held against a real one in tests/control_plane.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dra_driver.kube.api import Listing, ServerVersion
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError
from tests.unit.agent.objects import NODE


class ScriptedApi:
    """Has what a publisher calls, and answers as if all were well, unless `refusals` has errors
    for the verb: each call takes the first of them, and the last one stays. `calls` are all verbs
    so far. A list is of the `objects`, by name, that its field selector names."""

    def __init__(self, **refusals: Sequence[GcuError]) -> None:
        self.refusals = {verb.replace("_", " "): list(each) for verb, each in refusals.items()}
        self.calls: list[str] = []
        self.version = ServerVersion(1, 36, "v1.36.3")
        self.objects: dict[str, Object] = {}
        self._versions = itertools.count(100)

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        self._call(f"get {resource.plural}")
        return NODE

    def list(self, resource: Resource, *, field_selector: str = "") -> Listing:
        self._call("list")
        return Listing(
            tuple(each for each in self.objects.values() if _is_selected(each, field_selector)), "1"
        )

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        self._call("dry run" if dry_run else "create")
        return self._stored(body)

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        self._call("replace")
        return self._stored(body)

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        self._call("delete")

    def server_version(self) -> ServerVersion:
        self._call("version")
        return self.version

    def _call(self, verb: str) -> None:
        self.calls.append(verb)
        errors = self.refusals.get(verb, [])
        if errors:
            raise errors.pop(0) if len(errors) > 1 else errors[0]

    def _stored(self, body: Object) -> Object:
        number = str(next(self._versions))
        return {**body, "metadata": {"uid": number, **body["metadata"], "resourceVersion": number}}


def _is_selected(obj: Object, field_selector: str) -> bool:
    spec = obj["spec"]
    fields = {
        "metadata.name": obj["metadata"]["name"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.driver": spec["driver"],
    }
    wanted = (each.split("=") for each in field_selector.split(","))
    return all(fields[name] == value for name, value in wanted)
