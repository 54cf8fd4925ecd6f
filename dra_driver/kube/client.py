"""The client: implements `dra_driver.kube.api.Api`.

Objects are decoded JSON: typed models drop unknown fields, and are slow to decode.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from urllib.parse import urlencode

from dra_driver.kube.api import (
    NOTHING,
    Listing,
    PatchType,
    ServerVersion,
)
from dra_driver.kube.decode import WHOLE, Decoder, decode, decode_page
from dra_driver.kube.encode import encode
from dra_driver.kube.errors import NotFound, Unavailable, from_response, no_answer
from dra_driver.kube.http.cluster_config import ClusterConfig, in_pod
from dra_driver.kube.http.connection import FAILURES
from dra_driver.kube.http.connections import Connections
from dra_driver.kube.protobuf_metadata import MEDIA_TYPE as PROTOBUF
from dra_driver.kube.protobuf_metadata import with_metadata
from dra_driver.kube.resources import Resource
from dra_driver.kube.watch_stream import WatchStream
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import InvalidValue

_READ_SECONDS = 30.0
_PAGE = 500
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def connect(
    kubeconfig: Path | None,
    *,
    effects: Effects,
    user_agent: str,
    at_once: int = 8,
    context: str = "",
) -> Client:
    """A client for the cluster of `kubeconfig`, by its current context or by `context`; if the file
    is None, for the cluster of this pod. It sends at most `at_once` requests at a time, not
    counting watches.

    Nothing is sent yet. Raises InvalidValue if there is no usable configuration.
    """
    connections = Connections(_cluster_config(kubeconfig, context), at_once=at_once)
    return Client(connections, effects=effects, user_agent=user_agent)


def _cluster_config(kubeconfig: Path | None, context: str) -> ClusterConfig:
    if kubeconfig is None:
        if context:
            raise InvalidValue(
                f"the context {context} is of a kubeconfig, and there is none in a pod",
                remedy="name the file",
            )
        return in_pod(os.environ)
    from dra_driver.kube.http.kubeconfig import by_kubeconfig  # noqa: PLC0415

    return by_kubeconfig(kubeconfig, context)


@dataclass(frozen=True, slots=True)
class Client:
    """Implements `dra_driver.kube.api.Api`; safe for several threads."""

    connections: Connections
    _: KW_ONLY
    effects: Effects
    user_agent: str

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return self._json("GET", resource.path(namespace, name))

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        decoder: Decoder = WHOLE,
    ) -> Listing:
        query = _selectors(label_selector, field_selector)
        return self._list(resource, resource.path(namespace), query, decoder)

    def list_metadata(self, resource: Resource, *, decoder: Decoder = WHOLE) -> Listing:
        return self._list(resource, resource.path(""), {}, decoder, accept=_METADATA)

    def _list(
        self,
        resource: Resource,
        path: str,
        query: dict[str, str],
        decoder: Decoder,
        *,
        accept: str = "application/json",
    ) -> Listing:
        items: list[Object] = []
        query["limit"] = str(_PAGE)
        while True:
            text = self._send("GET", path, query, accept=accept)
            try:
                page, metadata = decode_page(text, decoder)
                version = metadata["resourceVersion"]
            except (ValueError, LookupError, TypeError, AttributeError) as error:  # a proxy's
                raise no_answer(f"GET {path}", error) from error
            # Items of a list have neither, objects of a watch do: so both are alike.
            for item in page:
                if isinstance(item, dict):  # else the decoder has cut it to what is read
                    item.setdefault("apiVersion", resource.api_version)
                    item.setdefault("kind", resource.kind)
            items += page
            if not metadata.get("continue"):
                return Listing(tuple(items), version)
            query["continue"] = metadata["continue"]

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        path = resource.path(body["metadata"].get("namespace", ""))
        return self._json("POST", path, {"dryRun": "All"} if dry_run else None, body=body)

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace", ""), metadata["name"], subresource)
        return self._json("PUT", path, body=body)

    def add_metadata(
        self,
        resource: Resource,
        obj: Object,
        *,
        finalizers: Sequence[str] = (),
        annotations: Mapping[str, str] = NOTHING,
    ) -> Object:
        metadata = obj["metadata"]
        path = resource.path(metadata.get("namespace", ""), metadata["name"])
        encoded = self._send("GET", path, accept=PROTOBUF)
        body = with_metadata(
            encoded, metadata["resourceVersion"], finalizers=finalizers, annotations=annotations
        )
        return self._json("PUT", path, body=body, media_type=PROTOBUF)

    def patch(
        self,
        resource: Resource,
        name: str,
        body: Object | Sequence[Object],
        *,
        namespace: str = "",
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "",
    ) -> Object:
        query = {"fieldManager": field_manager} if field_manager else {}
        if patch_type is PatchType.APPLY:
            query["force"] = "true"
        path = resource.path(namespace, name, subresource)
        return self._json("PATCH", path, query, body=body, media_type=patch_type.value)

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        wanted = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in wanted.items() if value}
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions:
            body["preconditions"] = preconditions
        self._json("DELETE", resource.path(namespace, name), body=body)

    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        decoder: Decoder = WHOLE,
        timeout: float = 300.0,
    ) -> WatchStream:
        query = _selectors(label_selector, field_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(int(timeout)),
        }
        path = resource.path(namespace)
        call = f"GET {path}"
        target, headers = f"{path}?{urlencode(query)}", self._headers(call)
        try:
            stream = self.connections.send("GET", target, headers, None, timeout + _READ_SECONDS)
            if stream.status >= 400:
                with closing(stream):  # also if its body breaks off
                    raise from_response(call, stream.status, stream.read(), stream.headers)
        except FAILURES as error:
            raise no_answer(call, error) from error
        return WatchStream(stream, f"watch of {path}", decoder)

    def server_version(self) -> ServerVersion:
        return ServerVersion.parse(self._json("GET", "/version"))

    def serves(self, resource: Resource) -> bool:
        group = f"/apis/{resource.group}" if resource.group else "/api"
        try:
            discovered = self._json("GET", f"{group}/{resource.version}")
        except NotFound:
            return False
        return any(each["name"] == resource.plural for each in discovered["resources"])

    def close(self) -> None:
        """Drop the idle connections."""
        self.connections.close()

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: object = None,
        media_type: str = "application/json",
    ) -> Object:
        around = self.effects(Point.API_WRITE) if method in _WRITES else nullcontext()
        with around:
            answer = self._send(method, path, query, body=body, media_type=media_type)
        try:
            decoded: Object = decode(answer)
        except ValueError as error:
            raise no_answer(f"{method} {path}", error) from error
        return decoded

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: object = None,
        media_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        call = f"{method} {path}"
        headers = self._headers(call, accept)
        content: bytes | None = None
        if body is not None:
            headers["Content-Type"] = media_type
            content = body if isinstance(body, bytes) else encode(body)
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            answer = self.connections.request(method, target, headers, content, _READ_SECONDS)
        except FAILURES as error:
            raise no_answer(call, error) from error
        if answer.status >= 400:
            raise from_response(call, answer.status, answer.body, answer.headers)
        return answer.body

    def _headers(self, call: str, accept: str = "application/json") -> dict[str, str]:
        try:
            token = self.connections.access.token()
        except (OSError, ValueError) as error:  # it is read again now and then
            raise Unavailable(f"there is no token for {call}: {error}") from error
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        return {"User-Agent": self.user_agent, "Accept": accept, **bearer}


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in given.items() if value}
