"""Requests by HTTP, as calls of the fake in this process."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_driver.kube.api import PatchType
from dra_driver.kube.decode import decode
from dra_driver.kube.encode import encode
from dra_driver.kube.errors import Gone, NotFound
from dra_driver.kube.generated.object_pb2 import Object as Message
from dra_driver.kube.generated.object_pb2 import ObjectMeta, Unknown
from dra_driver.kube.protobuf_metadata import MEDIA_TYPE as PROTOBUF
from dra_driver.kube.resources import BINDINGS, Resource
from dra_driver.model.claims.claim import Object
from tests.fake_api.api import KNOWN, FakeApi
from tests.fake_api.errors import Unplayed
from tests.fake_api.feed import Feed

_JSON: Final = "application/json"
_PROTOBUF_MAGIC: Final = b"k8s\x00"
_METADATA: Final = "as=PartialObjectMetadataList"


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `path` is percent-encoded as no name of ours needs it."""

    method: str
    path: str
    query: Mapping[str, str]
    user_agent: str
    accept: str
    media_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer."""

    status: int
    body: bytes
    media_type: str = _JSON


@dataclass(frozen=True, slots=True)
class _Target:
    resource: Resource
    namespace: str
    name: str
    subresource: str


@dataclass(frozen=True, slots=True)
class _Rest:
    """What is left of a list that was begun, at its version."""

    version: int
    items: Sequence[Object]


class Requests:
    """Answers requests; raises KubeError for what is refused, and Unplayed."""

    def __init__(self, api: FakeApi) -> None:
        self._api = api
        self._rests: dict[str, _Rest] = {}
        self._tokens = itertools.count(1)

    def answer(self, request: Request) -> Answer | Feed:
        """A whole answer, or a watch that goes on."""
        api = self._api.client(request.user_agent)
        if request.path == "/version":
            _expect(request, "GET")
            return _json(_version(api))
        parts = request.path.strip("/").split("/")
        if (parts[0], len(parts)) in {("api", 2), ("apis", 3)}:
            return self._discovery(request, "/".join(parts[1:]))
        target = _target(parts)
        if target.name:
            return _one(api, request, target)
        if request.method == "POST":
            _expect(request, "POST", "dryRun")
            dry_run = "dryRun" in request.query
            made = api.create(target.resource, _in(request, target), dry_run=dry_run)
            return _json(made, 201)
        if "watch" in request.query:
            return _feed(api, request, target)
        return self._page(api, request, target)

    def _discovery(self, request: Request, api_version: str) -> Answer:
        _expect(request, "GET")
        found = [each for each in self._api.served if each.api_version == api_version]
        if not found:
            raise NotFound("404 page not found", status=404)
        listed = [{"name": each.plural, "kind": each.kind} for each in found]
        return _json({"kind": "APIResourceList", "resources": listed})

    def _page(self, api: FakeApi, request: Request, target: _Target) -> Answer:
        _expect(request, "GET", "limit", "continue", "labelSelector", "fieldSelector")
        query = request.query
        if token := query.get("continue"):
            rest = self._rests.pop(token)
            self._check(rest.version)
        else:
            selectors = (query.get("labelSelector", ""), query.get("fieldSelector", ""))
            verb = "list_metadata" if _METADATA in request.accept else "list"
            items, version = api.listed(target.resource, target.namespace, *selectors, verb=verb)
            rest = _Rest(version, items)
        limit = int(query["limit"])
        metadata: Object = {"resourceVersion": str(rest.version)}
        if len(rest.items) > limit:
            metadata["continue"] = token = f"rest-{next(self._tokens)}"
            self._rests[token] = _Rest(rest.version, rest.items[limit:])
        fields = ("metadata",) if _METADATA in request.accept else None
        page = [_without_kind(each, fields) for each in rest.items[:limit]]
        return _json({"kind": "List", "metadata": metadata, "items": page})

    def _check(self, version: int) -> None:
        try:
            self._api.store.check(version)
        except Gone as error:
            message = "The provided continue parameter is too old"
            raise Gone(message, status=410, reason="Expired") from error


def _one(api: FakeApi, request: Request, target: _Target) -> Answer:
    """A request for one object."""
    resource, name, namespace = target.resource, target.name, target.namespace
    match request.method:
        case "GET":
            _expect(request, "GET")
            found = api.get(resource, name, namespace=namespace)
            return _protobuf(found) if request.accept == PROTOBUF else _json(found)
        case "PUT" if request.media_type == PROTOBUF:
            return _json(_put_protobuf(api, request, target))
        case "PUT":
            _expect(request, "PUT")
            body = _in(request, target)
            return _json(api.replace(resource, body, subresource=target.subresource))
        case "PATCH":
            return _json(_patch(api, request, target))
        case "DELETE":
            _delete(api, request, target)
            return _json({"kind": "Status", "status": "Success"})
    raise Unplayed("the method")


def _patch(api: FakeApi, request: Request, target: _Target) -> Object:
    _expect(request, "PATCH", "fieldManager", "force")
    return api.patch(
        target.resource,
        target.name,
        decode(request.body),
        namespace=target.namespace,
        patch_type=PatchType(request.media_type),
        subresource=target.subresource,
        field_manager=request.query.get("fieldManager", ""),
    )


def _delete(api: FakeApi, request: Request, target: _Target) -> None:
    _expect(request, "DELETE")
    options = decode(request.body)
    if options.keys() - {"apiVersion", "kind", "preconditions"}:
        raise Unplayed(f"the options {options}")
    given = options.get("preconditions") or {}
    api.delete(
        target.resource,
        target.name,
        namespace=target.namespace,
        uid=given.get("uid", ""),
        resource_version=given.get("resourceVersion", ""),
    )


def _put_protobuf(api: FakeApi, request: Request, target: _Target) -> Object:
    """What was added to the object's metadata; the message has the stored ones before them."""
    envelope = Unknown.FromString(request.body[len(_PROTOBUF_MAGIC) :])
    metadata = Message.FromString(envelope.raw).metadata
    named = {
        "name": target.name,
        "namespace": target.namespace,
        "resourceVersion": metadata.resource_version,
    }
    return api.add_metadata(
        target.resource,
        {"metadata": named},
        finalizers=[*metadata.finalizers],
        annotations=dict(metadata.annotations),
    )


def _protobuf(found: Object) -> Answer:
    """Only what `dra_driver.kube.protobuf_metadata` reads: it adds to this, and reads nothing."""
    version = found["metadata"]["resourceVersion"]
    raw = Message(metadata=ObjectMeta(resource_version=version)).SerializeToString()
    envelope = Unknown(type_meta=b"\x00", raw=raw).SerializeToString()
    return Answer(200, _PROTOBUF_MAGIC + envelope, PROTOBUF)


def _feed(api: FakeApi, request: Request, target: _Target) -> Feed:
    always = ("watch", "allowWatchBookmarks", "resourceVersion", "timeoutSeconds")
    _expect(request, "GET", *always, "labelSelector", "fieldSelector")
    query = request.query
    return api.feed(
        target.resource,
        resource_version=query["resourceVersion"],
        namespace=target.namespace,
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        timeout=float(query["timeoutSeconds"]),
    )


def _target(parts: Sequence[str]) -> _Target:
    """Raises NotFound for a kind that no program of ours knows: no server has it."""
    group, version, *rest = parts[1:] if parts[0] == "apis" else ["", *parts[1:]]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", ""][:3]
    for each in (*KNOWN, BINDINGS):
        if (each.group, each.version, each.plural) == (group, version, plural):
            return _Target(each, namespace, name, subresource)
    raise Unplayed(f"the kind {plural} of {group}/{version}")


def _in(request: Request, target: _Target) -> Object:
    """The body, as an object of the namespace in the path."""
    body: Object = decode(request.body)
    if target.namespace:
        body["metadata"]["namespace"] = target.namespace
    return body


def _without_kind(obj: Object, fields: Sequence[str] | None) -> Object:
    """As an item of a list."""
    left_out = {"apiVersion", "kind"}
    return {
        key: each
        for key, each in obj.items()
        if key not in left_out and (fields is None or key in fields)
    }


def _version(api: FakeApi) -> Object:
    found = api.server_version()
    return {"major": str(found.major), "minor": str(found.minor), "gitVersion": found.git}


def _expect(request: Request, method: str, *parameters: str) -> None:
    """Raises Unplayed for another method or another parameter."""
    if request.method != method or request.query.keys() - set(parameters):
        raise Unplayed(f"{request.method} with {dict(request.query)}")


def _json(found: Any, status: int = 200) -> Answer:
    return Answer(status, encode(found))
