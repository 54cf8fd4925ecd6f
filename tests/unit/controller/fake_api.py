"""The API server that a test of the controller writes to.

It answers a write with the next resourceVersion, or with an error that a test has set. What a
real API server does with the write is shown by the control-plane tests.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from controller.cache.claims import MANAGER
from dra_driver.kube.api import NOTHING, Listing, ServerVersion
from dra_driver.kube.decode import WHOLE, Decoder
from dra_driver.kube.encode import encode
from dra_driver.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object, allocation


class FakeApi:
    """Stores what was written. `write_errors` are for the next writes, one each; `read_errors` for
    reads of one object, `list_errors` for lists. `before_error` is called before an error of a
    write, `after_list` after each list."""

    def __init__(self) -> None:
        self.live: dict[tuple[Resource, str], Object] = {}
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.write_errors: list[Exception] = []
        self.before_error: Callable[[], object] = lambda: None
        self.read_errors: list[Exception] = []
        self.list_errors: list[KubeError] = []
        self.after_list: Callable[[], object] = lambda: None
        self.lists: list[str] = []
        self.version = 100
        self.minor = 36

    def server_version(self) -> ServerVersion:
        return ServerVersion(1, self.minor)

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        self.reads.append(f"{resource.plural} {name}")
        if self.read_errors:
            raise self.read_errors.pop(0)
        found = self.live.get((resource, name))
        if found is None:
            raise NotFound("gone", status=404)
        return found

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        name = body["metadata"]["name"]
        self.writes.append(f"{name} {subresource}".strip())
        if self.write_errors:
            self.before_error()
            raise self.write_errors.pop(0)
        stored = copy.deepcopy(body)
        if subresource == "status" and allocation(stored) is not None:
            stored["metadata"]["managedFields"] = written_by(MANAGER)
        return self.store(resource, stored)

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        name = body["metadata"]["name"]
        self.writes.append(f"{name} create")
        if self.write_errors:
            raise self.write_errors.pop(0)
        if (resource, name) in self.live:
            raise AlreadyExists("there is one", status=409)
        # Not that of one of the same name before it.
        made = body | {"metadata": body["metadata"] | {"uid": f"uid-{name}-{self.version}"}}
        return self.store(resource, copy.deepcopy(made))

    def delete(
        self, resource: Resource, name: str, *, namespace: str, uid: str, resource_version: str
    ) -> None:
        self.writes.append(f"{name} delete")
        found = self.get(resource, name)["metadata"]
        if (found["uid"], found["resourceVersion"]) != (uid, resource_version):
            raise Conflict("another one", status=409)
        del self.live[resource, name]

    def add_metadata(
        self,
        resource: Resource,
        obj: Object,
        *,
        finalizers: Sequence[str] = (),
        annotations: Mapping[str, str] = NOTHING,
    ) -> Object:
        metadata = obj["metadata"]
        self.writes.append(f"{metadata['name']} exactly")
        changed = metadata | {
            "finalizers": [*metadata.get("finalizers", ()), *finalizers],
            "annotations": {**metadata.get("annotations", {}), **annotations},
        }
        return self.store(resource, obj | {"metadata": changed})

    def list(self, resource: Resource, *, decoder: Decoder = WHOLE, **_: str) -> Listing:
        self.lists.append(resource.plural)
        return self._listed(resource, lambda obj: decoder.decode(encode(obj)))

    def list_metadata(self, resource: Resource, *, decoder: Decoder = WHOLE) -> Listing:
        self.lists.append(f"{resource.plural} metadata")
        return self._listed(
            resource, lambda obj: decoder.decode(encode({"metadata": obj["metadata"]}))
        )

    def _listed(self, resource: Resource, decode: Callable[[Object], Object]) -> Listing:
        if self.list_errors:
            raise self.list_errors.pop(0)
        found = [decode(obj) for (kind, _), obj in self.live.items() if kind is resource]
        listing = Listing(tuple(found), str(self.version))
        self.after_list()
        return listing

    def patch(self, resource: Resource, name: str, body: Object, **_: Any) -> Object:
        self.writes.append(f"{name} patch")
        if self.write_errors:
            self.before_error()
            raise self.write_errors.pop(0)
        found = copy.deepcopy(self.get(resource, name))
        if found["metadata"]["uid"] != body["metadata"]["uid"]:
            raise Conflict("another object", status=409)
        gone = {each["name"] for each in body["spec"]["schedulingGates"]}
        gates = [each for each in found["spec"]["schedulingGates"] if each["name"] not in gone]
        found["spec"]["schedulingGates"] = gates
        return self.store(resource, found)

    def store(self, resource: Resource, obj: Object) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.live[resource, obj["metadata"]["name"]] = obj
        return obj


def written_by(manager: str) -> list[Object]:
    fields: Object = {"f:status": {"f:allocation": {}}}
    return [{"manager": manager, "subresource": "status", "fieldsV1": fields}]
