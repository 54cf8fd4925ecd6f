"""The client behind the port `Api`. No other file imports ``kubernetes``.

Of the official client only configuration, authentication and transport are used: its models
drop fields they do not know, and decode slowly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import urlencode

import urllib3
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject, RESTResponse
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from dra_driver.kube import exact
from dra_driver.kube.api import NOTHING, Change, Listing, PatchType, ServerVersion, WatchEvent
from dra_driver.kube.errors import KubeError, NotFound, Unavailable, from_response
from dra_driver.kube.resources import Resource
from dra_driver.model.claim import Object
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import InvalidValue

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 30.0
_PAGE = 500
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_CONNECTIONS = 32  # concurrent calls from one process that keep their connection


def connect(kubeconfig: Path | None, *, effects: Effects, user_agent: str) -> Client:
    """A client for the cluster of `kubeconfig`, or of the pod we run in where it is None.

    Nothing is sent yet. Raises InvalidValue where there is no usable configuration.
    """
    configuration = Configuration()
    try:
        if kubeconfig is None:
            # Installs a hook that reads the token again every minute: projected tokens rotate.
            load_incluster_config(client_configuration=configuration)
        else:
            load_kube_config(
                str(kubeconfig), client_configuration=configuration, persist_config=False
            )
    except (ConfigException, OSError) as error:
        source = kubeconfig or "the pod's service account"
        raise InvalidValue(
            f"no API server can be reached through {source}: {error}",
            remedy="run in a pod with a service account, or name a kubeconfig",
        ) from error
    configuration.retries = False  # our callers decide: a repeated PUT may hide its own success
    configuration.keep_alive = True  # a watch whose peer vanished without a word is noticed
    configuration.connection_pool_maxsize = _CONNECTIONS
    return Client(configuration, effects=effects, user_agent=user_agent)


class Client:
    """Implements `dra_driver.kube.api.Api`; safe for several threads."""

    def __init__(self, configuration: Configuration, *, effects: Effects, user_agent: str) -> None:
        self._configuration = configuration
        self._rest = RESTClientObject(configuration)
        self._effects = effects
        self._user_agent = user_agent

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return self._json("GET", resource.path(namespace, name))

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> Listing:
        items: list[Object] = []
        query = _selectors(label_selector, field_selector) | {"limit": str(_PAGE)}
        while True:
            page = self._json("GET", resource.path(namespace), query)
            # Items of a list carry neither; a watch's objects do, so that both look the same.
            items += (
                {"apiVersion": resource.api_version, "kind": resource.kind, **item}
                for item in page.get("items") or ()
            )
            metadata = page["metadata"]
            if not metadata.get("continue"):
                return Listing(tuple(items), metadata["resourceVersion"])
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
        encoded = self._read(self._send("GET", path, {}, accept=exact.MEDIA_TYPE), f"GET {path}")
        body = exact.with_metadata(
            encoded, metadata["resourceVersion"], finalizers=finalizers, annotations=annotations
        )
        return self._json("PUT", path, body=body, media_type=exact.MEDIA_TYPE)

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
        force: bool = False,
    ) -> Object:
        query = {"fieldManager": field_manager} if field_manager else {}
        if force:
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
        timeout: float = 300.0,
    ) -> ClientWatch:
        query = _selectors(label_selector, field_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(int(timeout)),
        }
        path = resource.path(namespace)
        response = self._send("GET", path, query, read_seconds=timeout + _READ_SECONDS)
        return ClientWatch(response, f"watch of {path}")

    def server_version(self) -> ServerVersion:
        return ServerVersion.parse(self._json("GET", "/version"))

    def serves(self, resource: Resource) -> bool:
        """Whether the server serves the kind at that version (API discovery)."""
        group = f"/apis/{resource.group}" if resource.group else "/api"
        try:
            found = self._json("GET", f"{group}/{resource.version}")
        except NotFound:
            return False
        return any(entry["name"] == resource.plural for entry in found.get("resources", ()))

    def close(self) -> None:
        """Drop the idle connections."""
        self._rest.close()

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: object = None,
        media_type: str = "application/json",
    ) -> Object:
        around = self._effects(Point.API_WRITE) if method in _WRITES else nullcontext()
        with around:
            response = self._send(method, path, query or {}, body=body, media_type=media_type)
            answer = self._read(response, f"{method} {path}")
        try:
            decoded: Object = json.loads(answer)
        except ValueError as error:
            raise _no_answer(f"{method} {path}", error) from error
        return decoded

    def _read(self, response: RESTResponse, call: str) -> bytes:
        try:
            content: bytes = response.read()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _no_answer(call, error) from error
        return content

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: object = None,
        media_type: str = "application/json",
        accept: str = "application/json",
        read_seconds: float = _READ_SECONDS,
    ) -> RESTResponse:
        call = f"{method} {path}"
        url = f"{self._configuration.host}{path}"
        if query:
            url += f"?{urlencode(query)}"
        headers = self._headers(call) | {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = media_type
        try:
            response: RESTResponse = self._rest.request(
                method, url, headers, body, _request_timeout=(_CONNECT_SECONDS, read_seconds)
            )
            if response.status >= 400:
                raise from_response(call, response.status, response.read(), response.headers)
        except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
            raise _no_answer(call, error) from error
        return response

    def _headers(self, call: str) -> dict[str, str]:
        headers = {"User-Agent": self._user_agent}
        try:
            bearer = self._configuration.auth_settings().get("BearerToken")
        except (ConfigException, OSError) as error:  # the token's file is read again now and then
            raise Unavailable(f"there is no token for {call}: {error}") from error
        if bearer and bearer["value"]:
            headers[bearer["key"]] = bearer["value"]
        return headers


class ClientWatch:
    """The lines of one watch, decoded as they come."""

    def __init__(self, response: RESTResponse, name: str) -> None:
        self._response = response.response
        self._name = name
        self._closed = False

    def __iter__(self) -> Iterator[WatchEvent]:
        try:
            for line in self._lines():
                yield self._event(line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # After close() the socket is shut under the reader: whatever that raises is the end.
            if not self._closed:
                raise _no_answer(self._name, error) from error
        finally:
            self._closed = True
            self._response.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self._response.shutdown()
        except (RuntimeError, ValueError, OSError):
            # The response ended by itself in the meantime: nothing is left to interrupt.
            return

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        while not self._closed:
            chunk = self._response.read1()
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from filter(None, lines)

    def _event(self, line: bytes) -> WatchEvent:
        decoded = json.loads(line)
        found: Object = decoded["object"]
        if decoded["type"] == "ERROR":
            status = int(found.get("code") or 500)
            raise from_response(self._name, status, json.dumps(found).encode())
        return WatchEvent(Change(decoded["type"]), found)


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in given.items() if value}


def _no_answer(call: str, error: Exception) -> KubeError:
    return Unavailable(f"the API server did not answer {call}: {error}")
