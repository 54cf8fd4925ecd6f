"""The interface of the API server: plain dicts, and the errors of `dra_driver.kube.errors`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec

from dra_driver.kube.decode import WHOLE, Decoder
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

_GIT: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?:[.+-].*)?")


class Change(StrEnum):
    """What happened to an object, as a watch says it (``type``)."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class PatchType(StrEnum):
    """How a patch is read; the value is its media type."""

    MERGE = "application/merge-patch+json"
    STRATEGIC_MERGE = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class Listing(msgspec.Struct, frozen=True):
    """All objects of a list as its decoder returned them, and the resourceVersion from which a
    watch continues."""

    items: tuple[Any, ...]
    resource_version: str


class WatchEvent(msgspec.Struct, frozen=True):
    """One event of a watch; the object is as its decoder returned it. That of a BOOKMARK is a dict
    with a resourceVersion alone."""

    change: Change
    object: Any


class ServerVersion(msgspec.Struct, frozen=True, order=True):
    """The minor version that a server plays or a kubelet is; `git` says which program it is, such
    as ``v1.36.3``."""

    major: int
    minor: int
    git: str = ""

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> ServerVersion:
        """From ``/version``. Vendors append characters to the numbers (``36+``).

        A server that was started with ``--emulated-version`` keeps its own numbers, and says the
        older ones beside them (KEP-4330). Raises InvalidValue.
        """
        own = _numbers(answer, "major", "minor")
        if own is None:
            raise InvalidValue(f"the API server's /version has no version number: {dict(answer)}")
        git = str(answer.get("gitVersion", ""))
        emulated = _numbers(answer, "emulationMajor", "emulationMinor")
        if emulated is None or emulated >= own:
            return cls(*own, git)
        return cls(*emulated, f"{git} that emulates {emulated[0]}.{emulated[1]}")

    @classmethod
    def of_git(cls, text: str) -> ServerVersion:
        """From the full text, ``v1.36.3`` or ``v1.36.1+k3s1``. Raises InvalidValue."""
        match = _GIT.fullmatch(text)
        if match is None:
            raise InvalidValue(f"{text!r} is no version of Kubernetes")
        return cls(int(match[1]), int(match[2]), text)

    def __str__(self) -> str:
        return self.git or f"v{self.major}.{self.minor}"


def _numbers(answer: Mapping[str, Any], *keys: str) -> tuple[int, int] | None:
    """Two fields of ``/version``; None where one is not there or no number."""
    found = [re.match(r"[0-9]{1,9}", str(answer.get(key, ""))) for key in keys]
    major, minor = (int(match.group()) if match else None for match in found)
    return None if major is None or minor is None else (major, minor)


class Watch(Protocol):
    """A running watch: iterate over it in one thread, close it from any."""

    def __iter__(self) -> Iterator[WatchEvent]: ...

    def close(self) -> None:
        """End the iteration. May be called from another thread, and more than once."""


class ObjectApi(Protocol):
    """Single objects of the API server. Every method raises KubeError; every call has a time
    limit."""

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object: ...

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        """POST, in the body's namespace. Raises AlreadyExists. With `dry_run` the server stores
        nothing, and answers what it would have stored."""

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        """PUT. Raises Conflict unless the body's resourceVersion is the current one."""

    def add_metadata(
        self,
        resource: Resource,
        obj: Object,
        *,
        finalizers: Sequence[str] = (),
        annotations: Mapping[str, str] = NOTHING,
    ) -> Object:
        """PUT the stored object with these added to its finalizers and annotations; its opaque
        parts stay byte for byte (`dra_driver.kube.protobuf_metadata`). Raises Conflict unless
        `obj` has the current resourceVersion."""

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
        """PATCH; an apply takes fields that others own."""

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        """DELETE, with `uid` and `resource_version` as preconditions. Raises NotFound, Conflict."""


class Api(ObjectApi, Protocol):
    """The API server, with lists and watches."""

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        decoder: Decoder = WHOLE,
    ) -> Listing:
        """All objects, as `decoder` returns them. They are read in pages, and each page's text is
        dropped before the next one. Raises Gone if the list expired between two pages."""

    def list_metadata(self, resource: Resource, *, decoder: Decoder = WHOLE) -> Listing:
        """As `list`, but only the metadata of each object is sent (PartialObjectMetadata)."""

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
    ) -> Watch:
        """Changes after `resource_version`, with bookmarks; the server ends it after `timeout`
        seconds. The call itself and the iteration may raise Gone."""

    def server_version(self) -> ServerVersion: ...

    def serves(self, resource: Resource) -> bool:
        """Whether the server serves the kind, by discovery, which every account may read. A request
        for objects is answered 403 without the right to them, whether or not the kind is there."""


def apply_status(api: ObjectApi, resource: Resource, fields: Object, field_manager: str) -> None:
    """Let the field manager own these fields of the object's subresource ``status``, and no
    others; `fields` have the object's ``metadata``. Raises KubeError."""
    metadata = fields["metadata"]
    api.patch(
        resource,
        metadata["name"],
        {"apiVersion": resource.api_version, "kind": resource.kind, **fields},
        namespace=metadata.get("namespace", ""),
        patch_type=PatchType.APPLY,
        subresource="status",
        field_manager=field_manager,
    )
