"""The API server in the test's own process."""

from __future__ import annotations

import copy
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from typing import Final

from dra_driver.kube import resources
from dra_driver.kube.api import NOTHING, Listing, PatchType, ServerVersion
from dra_driver.kube.decode import WHOLE, Decoder
from dra_driver.kube.encode import encode
from dra_driver.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from dra_driver.kube.resources import BINDINGS, LEASES, NODES, PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object
from tests.fake_api.errors import Unplayed
from tests.fake_api.faults import Call, Faults
from tests.fake_api.feed import DecodedFeed, Feed
from tests.fake_api.managed_fields import with_writer
from tests.fake_api.patches import patched
from tests.fake_api.selectors import selects
from tests.fake_api.store import Key, Store, copied

VERSION: Final = ServerVersion(1, 37, "v1.37.2")
KNOWN: Final = frozenset(
    each for each in vars(resources).values() if isinstance(each, Resource) and each != BINDINGS
)
"""All kinds that our programs read or write."""

OFF_BY_DEFAULT: Final = frozenset({resources.POD_GROUPS, resources.POD_GROUPS_V1BETA1})
"""Those that Kubernetes 1.37 does not serve."""

_WITH_STATUS: Final = frozenset({NODES, PODS, RESOURCE_CLAIMS})
_SET_BY_SERVER: Final = ("uid", "creationTimestamp", "deletionTimestamp", "managedFields")


class FakeApi:
    """Implements `dra_driver.kube.api.Api`. What a test does and looks at is `store`, for objects
    as they are, and `faults`. `client` gives the same server to another user."""

    def __init__(
        self,
        *objects: tuple[Resource, Object],
        release: ServerVersion = VERSION,
        served: AbstractSet[Resource] = KNOWN - OFF_BY_DEFAULT,
        user: str = "tests",
    ) -> None:
        self.store = Store()
        self.faults = Faults()
        self.release = release
        self.served = served
        self._user = user
        for resource, each in objects:
            self.put(resource, each)

    def client(self, user: str) -> FakeApi:
        """The server as it is for a client of this user agent, which up to its first slash is the
        writer in ``managedFields``."""
        made = copy.copy(self)
        made._user = user
        return made

    def put(self, resource: Resource, obj: Object) -> Object:
        """Somebody made or changed the object: it is stored as given, whatever was there before."""
        key = _key(resource, obj)
        made = copied(obj)
        if "uid" not in made["metadata"]:
            made["metadata"]["uid"] = self._new_uid()
        return self.store.put(key, made)

    def remove(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """The object is gone at once."""
        return self.store.remove(Key(resource, namespace, name))

    def all(self, resource: Resource, namespace: str = "") -> list[Object]:
        """The objects of the kind, as copies."""
        return [copied(each) for each in self.store.of_kind(resource, namespace)]

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        call = self._begin("get", resource, name)
        found = copied(self._stored(Key(resource, namespace, name)))
        self.faults.answer(call)
        return found

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        decoder: Decoder = WHOLE,
    ) -> Listing:
        found, version = self.listed(resource, namespace, label_selector, field_selector)
        return Listing(tuple(decoder.decode(encode(each)) for each in found), str(version))

    def list_metadata(self, resource: Resource, *, decoder: Decoder = WHOLE) -> Listing:
        found, version = self.listed(resource, verb="list_metadata")
        items = (decoder.decode(encode({"metadata": each["metadata"]})) for each in found)
        return Listing(tuple(items), str(version))

    def listed(
        self,
        resource: Resource,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        *,
        verb: str = "list",
    ) -> tuple[Sequence[Object], int]:
        """The stored objects of a list, not to be changed, and the version at which they were."""
        call = self._begin(verb, resource)
        wanted = selects(label_selector, field_selector)
        with self.store.changed:
            found = [each for each in self.store.of_kind(resource, namespace) if wanted(each)]
            version = self.store.version
        self.faults.answer(call)
        return found, version

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        metadata = body["metadata"]
        if not metadata.get("name"):
            generated = f"{metadata['generateName']}{secrets.token_hex(3)[:5]}"
            body = body | {"metadata": metadata | {"name": generated}}
        key = _key(resource, body)
        call = self._begin("create", resource, key.name, body=body)
        if resource == BINDINGS:
            made = self._bind(key, body)
        else:
            with self.store.changed:
                if self.store.find(key) is not None:
                    raise _exists(key)
                made = copied(body)
                made["metadata"] |= {"uid": self._new_uid(), "creationTimestamp": _now()}
                if not dry_run:
                    made = self.store.put(key, made)
        self.faults.answer(call)
        return copied(made)

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        key = _key(resource, body)
        call = self._begin("replace", resource, key.name, subresource, body)
        if resource == LEASES and self.store.find(key) is None:  # a PUT may make one
            raise _conflict(key, "UID in object meta: ")
        made = self._change(key, subresource, lambda _: copied(body))
        self.faults.answer(call)
        return made

    def add_metadata(
        self,
        resource: Resource,
        obj: Object,
        *,
        finalizers: Sequence[str] = (),
        annotations: Mapping[str, str] = NOTHING,
    ) -> Object:
        metadata = obj["metadata"]
        key = _key(resource, obj)
        call = self._begin("add_metadata", resource, key.name, body=obj)

        def added(stored: Object) -> Object:
            found = stored["metadata"]
            changed = found | {"resourceVersion": metadata["resourceVersion"]}
            changed["finalizers"] = [*(found.get("finalizers") or ()), *finalizers]
            changed["annotations"] = {**(found.get("annotations") or {}), **annotations}
            return stored | {"metadata": {name: each for name, each in changed.items() if each}}

        made = self._change(key, "", added)
        self.faults.answer(call)
        return made

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
        call = self._begin("patch", resource, name, subresource, body)
        if field_manager:
            raise Unplayed(f"the field manager {field_manager!r} of a patch")
        key = Key(resource, namespace, name)

        def change(stored: Object) -> Object:
            made = patched(stored, body, patch_type)
            if made["metadata"]["uid"] != stored["metadata"]["uid"]:
                raise Invalid("metadata.uid: field is immutable", status=422, reason="Invalid")
            return made

        made = self._change(key, subresource, change)
        self.faults.answer(call)
        return made

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        call = self._begin("delete", resource, name)
        key = Key(resource, namespace, name)
        with self.store.changed:
            stored = self._stored(key)
            _check(key, stored, {"uid": uid, "resourceVersion": resource_version})
            if resource == PODS and stored["spec"].get("nodeName"):
                raise Unplayed("a pod that a kubelet must end: take `remove`")
            if not stored["metadata"].get("finalizers"):
                self.store.remove(key)
            elif "deletionTimestamp" not in stored["metadata"]:
                metadata = stored["metadata"] | {"deletionTimestamp": _now()}
                self.store.put(key, stored | {"metadata": metadata})
        self.faults.answer(call)

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
    ) -> DecodedFeed:
        feed = self.feed(
            resource,
            resource_version=resource_version,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            timeout=timeout,
        )
        return DecodedFeed(feed, decoder)

    def feed(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout: float = 300.0,
    ) -> Feed:
        """A watch of the objects as they are stored, which are not to be changed."""
        call = self._begin("watch", resource)
        if not resource_version:
            raise Unplayed("a watch from no version")
        return Feed(
            self.store,
            self.faults,
            call,
            namespace,
            selects(label_selector, field_selector),
            version=int(resource_version),
            seconds=timeout,
        )

    def server_version(self) -> ServerVersion:
        return self.release

    def serves(self, resource: Resource) -> bool:
        return resource in self.served

    def close(self) -> None:
        """Nothing is open."""

    def _begin(
        self,
        verb: str,
        resource: Resource,
        name: str = "",
        subresource: str = "",
        body: Object | Sequence[Object] | None = None,
    ) -> Call:
        call = Call(verb, resource, name, subresource, self._user, body)
        self.faults.meet(call)
        if resource != BINDINGS and resource not in self.served:
            raise NotFound("the server could not find the requested resource", status=404)
        return call

    def _new_uid(self) -> str:
        """One that no object of this server has had, and the same in each run."""
        return str(uuid.uuid5(uuid.NAMESPACE_OID, str(self.store.version + 1)))

    def _stored(self, key: Key) -> Object:
        found = self.store.find(key)
        if found is None:
            message = f'{_plural(key.resource)} "{key.name}" not found'
            raise NotFound(message, status=404, reason="NotFound")
        return found

    def _change(self, key: Key, subresource: str, change: Callable[[Object], Object]) -> Object:
        """Store what `change` makes of the object; a change of nothing keeps its version."""
        if subresource not in {"", "status"}:
            raise Unplayed(f"the subresource {subresource} of {key.resource.plural}")
        with self.store.changed:
            stored = self._stored(key)
            body = change(stored)
            _check(key, stored, body["metadata"])
            made = _written(key.resource, stored, body, subresource, self._user.partition("/")[0])
            if made == stored:
                return copied(stored)
            metadata = made["metadata"]
            if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
                return copied(self.store.remove(key) and made)
            return copied(self.store.put(key, copied(made)))

    def _bind(self, key: Key, body: Object) -> Object:
        """The pod of that name to a node, with the annotations of the Binding."""
        pod_key = key._replace(resource=PODS)
        with self.store.changed:
            pod = self._stored(pod_key)
            _check(pod_key, pod, {"uid": body["metadata"].get("uid")})
            if pod["spec"].get("nodeName"):
                raise _conflict(pod_key, f"already assigned to node {pod['spec']['nodeName']}")
            metadata = dict(pod["metadata"])
            if notes := body["metadata"].get("annotations"):
                metadata["annotations"] = {**(metadata.get("annotations") or {}), **notes}
            spec = pod["spec"] | {"nodeName": body["target"]["name"]}
            self.store.put(pod_key, pod | {"metadata": metadata, "spec": spec})
        return {"kind": "Status", "status": "Success", "metadata": {}}


def _written(
    resource: Resource, stored: Object, body: Object, subresource: str, manager: str
) -> Object:
    """What the server stores of the body: the status, or all but that; and what is its own."""
    if subresource:
        made = stored | {"status": body.get("status") or {}}
        return with_writer(stored, made, manager)
    made = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    if resource in _WITH_STATUS:
        made.pop("status", None)
        made |= {key: stored[key] for key in ("status",) if key in stored}
    kept = {key: stored["metadata"][key] for key in _SET_BY_SERVER if key in stored["metadata"]}
    version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
    given = {key: each for key, each in body["metadata"].items() if key not in _SET_BY_SERVER}
    return made | {"metadata": given | kept | version}


def _check(key: Key, stored: Object, given: Mapping[str, object]) -> None:
    """Raises Conflict where the caller means another object, or another version of it."""
    for name in ("uid", "resourceVersion"):
        if given.get(name) and given[name] != stored["metadata"][name]:
            raise _conflict(key, f"{name} {given[name]} is not {stored['metadata'][name]}")


def _key(resource: Resource, obj: Object) -> Key:
    metadata = obj["metadata"]
    return Key(resource, metadata.get("namespace") or "", metadata["name"])


def _conflict(key: Key, why: str) -> Conflict:
    what = f'{_plural(key.resource)} "{key.name}"'
    message = f"Operation cannot be fulfilled on {what}: {why}"
    return Conflict(message, status=409, reason="Conflict")


def _exists(key: Key) -> AlreadyExists:
    message = f'{_plural(key.resource)} "{key.name}" already exists'
    return AlreadyExists(message, status=409, reason="AlreadyExists")


def _plural(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
