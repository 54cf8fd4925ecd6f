"""The API server that a test of the controller writes to, with notes of what was asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, Final

from controller.cache.claims import MANAGER
from dra_driver.kube.api import Listing, ServerVersion
from dra_driver.kube.decode import WHOLE, Decoder
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object
from tests.fake_api import api
from tests.fake_api.faults import Call
from tests.fake_api.store import Key, Store

_NOTES: Final = {
    "create": "create",
    "delete": "delete",
    "patch": "patch",
    "add_metadata": "exactly",
}
_WRITES: Final = frozenset({*_NOTES, "replace"})


class FakeApi(api.FakeApi):
    """A server of all kinds, whose only user is the controller. `write_errors` are for the next
    writes, one each; `read_errors` for reads of one object, `list_errors` for lists. `before_error`
    is called before an error of a write, `after_list` after each list."""

    def __init__(self) -> None:
        super().__init__(release=ServerVersion(1, 36), served=api.KNOWN, user=f"{MANAGER}/1")
        self.live: MutableMapping[tuple[Resource, str], Object] = Live(self.store)
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.lists: list[str] = []
        self.write_errors: list[Exception] = []
        self.before_error: Callable[[], object] = lambda: None
        self.read_errors: list[Exception] = []
        self.list_errors: list[Exception] = []
        self.after_list: Callable[[], object] = lambda: None

    @property
    def version(self) -> int:
        """The version of the last change."""
        return self.store.version

    def list(self, resource: Resource, *, decoder: Decoder = WHOLE, **how: Any) -> Listing:
        found = super().list(resource, decoder=decoder, **how)
        self.after_list()
        return found

    def list_metadata(self, resource: Resource, *, decoder: Decoder = WHOLE) -> Listing:
        found = super().list_metadata(resource, decoder=decoder)
        self.after_list()
        return found

    def _begin(
        self,
        verb: str,
        resource: Resource,
        name: str = "",
        subresource: str = "",
        body: Object | Sequence[Object] | None = None,
    ) -> Call:
        if verb in _WRITES:
            self.writes.append(f"{name} {_NOTES.get(verb, subresource)}".strip())
            if self.write_errors:
                self.before_error()
                raise self.write_errors.pop(0)
        elif verb == "get":
            self.reads.append(f"{resource.plural} {name}")
            if self.read_errors:
                raise self.read_errors.pop(0)
        else:
            self.lists.append(f"{resource.plural}{verb.removeprefix('list').replace('_', ' ')}")
            if self.list_errors:
                raise self.list_errors.pop(0)
        return super()._begin(verb, resource, name, subresource, body)


class Live(MutableMapping[tuple[Resource, str], Object]):
    """What is stored, by kinds and names: tests of the controller use one namespace."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getitem__(self, item: tuple[Resource, str]) -> Object:
        found = self._store.find(self._key(item))
        if found is None:
            raise KeyError(item)
        return found

    def __setitem__(self, item: tuple[Resource, str], obj: Object) -> None:
        self._store.put(Key(item[0], obj["metadata"].get("namespace") or "", item[1]), obj)

    def __delitem__(self, item: tuple[Resource, str]) -> None:
        self._store.remove(self._key(item))

    def __iter__(self) -> Iterator[tuple[Resource, str]]:
        return iter([(key.resource, key.name) for key in self._store.all_keys()])

    def __len__(self) -> int:
        return len(self._store.all_keys())

    def _key(self, item: tuple[Resource, str]) -> Key:
        resource, name = item
        keys = (Key(resource, namespace, name) for namespace in ("default", ""))
        found = next((key for key in keys if self._store.find(key) is not None), None)
        return found or next(
            (key for key in self._store.all_keys() if (key.resource, key.name) == item),
            Key(resource, "", name),
        )


def written_by(manager: str) -> list[Object]:
    fields: Object = {"f:status": {"f:allocation": {}}}
    return [{"manager": manager, "subresource": "status", "fieldsV1": fields}]
