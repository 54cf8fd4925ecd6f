"""Follows what the page shows of a cluster, with the rights of the user."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, Final, Protocol

from controller.cache.keys import full_name, uid_of
from controller.cache.pods import group_name
from dra_driver.kube.api import Api
from dra_driver.kube.errors import KubeError
from dra_driver.kube.preflight import OLDEST
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    NODES,
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from dra_driver.util.background import Background
from dra_driver.util.hooks import OnChange
from kubectl_gcu.cluster.state import unreadable
from kubectl_gcu.cluster.to_decide import rules_unread
from kubectl_gcu.scheduling.waiting import WaitingObjects, waiting
from kubectl_gcu.view.live_inventory import LiveInventory, summary
from kubectl_gcu.view.readable_watch import ReadableReflector, Unreadable
from kubectl_gcu.view.snapshot import PageSnapshot
from kubectl_gcu.view.store import ObjectStore, OnObject

_STOP_SECONDS: Final = 1.0
_BEAT: Final = 5.0  # seconds; a connection that broke without a word is noticed after so long
_OF_DRIVER: Final = f"spec.driver={DRIVER}"
_RULES: Final = (DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1BETA2)
_GROUPS: Final = (POD_GROUPS, POD_GROUPS_V1BETA1)


class LiveCluster:
    """Objects arrive in the threads of reflectors; `snapshot` may be called from any thread."""

    def __init__(self, api: Api, namespace: str, on_change: OnChange) -> None:
        """Asks the server for its version, and raises KubeError where it does not answer.
        `namespace` is read where the user may not read all. `on_change` is called after changes,
        and when the server is lost or answers again."""
        version = api.server_version()
        self._lock = threading.Lock()
        self._api, self._namespace, self._on_change = api, namespace, on_change
        self._inventory = LiveInventory()
        self._pods: dict[str, Object] = {}
        self._claims: dict[str, Object] = {}
        self._classes: dict[str, Object] = {}
        self._groups: dict[str, Object] = {}
        self._waiting: dict[str, Any] | None = None  # None: to be computed again
        reflect = self._reflector
        self._of_inspect: dict[Resource, ReadableReflector] = {}
        self._beside: list[ReadableReflector] = []
        # Asked for a kind that it does not know, a server first says who may not read it.
        if (version.major, version.minor) >= OLDEST:
            no_rules = rules_unread(version)
            self._of_inspect[DEVICE_TAINT_RULES] = reflect(
                _RULES, self._inventory.on_rule, lambda _: no_rules
            )
            self._of_inspect[RESOURCE_SLICES] = reflect(
                (RESOURCE_SLICES,), self._inventory.on_slice, field_selector=_OF_DRIVER
            )
            self._of_inspect[RESOURCE_CLAIMS] = reflect((RESOURCE_CLAIMS,), self._on_claim)
            self._beside.append(reflect((DEVICE_CLASSES,), self._on_class, _classes_unread))
            self._beside.append(reflect(_GROUPS, self._on_group, self._groups_unread))
        self._of_inspect[NODES] = reflect((NODES,), self._inventory.on_node)
        self._of_inspect[PODS] = reflect((PODS,), self._on_pod)
        self._heartbeat = Heartbeat(api, self._on_beat)

    def start(self) -> None:
        for each in (*self._reflectors(), self._heartbeat):
            each.start()

    def stop(self) -> None:
        for each in (self._heartbeat, *self._reflectors()):
            each.stop(_STOP_SECONDS)

    def is_synced(self) -> bool:
        """Whether everything has been listed once, or refused."""
        return all(each.synced.is_set() for each in self._reflectors())

    def snapshot(self) -> PageSnapshot:
        """The cluster as it is now; nothing of it before everything has been listed, as cards
        would look free."""
        if not self.is_synced():
            return PageSnapshot({}, {"loading": True, "lost": self.problem()})
        slices = self._of_inspect.get(RESOURCE_SLICES)
        with self._lock:
            self._inventory.see_slices(may=not (slices and slices.missing))
            entries = self._inventory.entries()
            unreadable_nodes = self._inventory.unreadable()
            if self._waiting is None:
                self._waiting = self._read_waiting()
            found = self._waiting
        missing = filter(None, (each.missing for each in self._of_inspect.values()))
        return PageSnapshot(
            nodes={f"{each.view.served_by}/{each.view.name}": each.data for each in entries},
            sections={
                **summary(entries, [*missing, *unreadable_nodes]),
                **found,
                "notices": list(self._notices()),
                "loading": False,
                "lost": self.problem(),
            },
        )

    def problem(self) -> str:
        """Why the page may be out of date; empty if nothing is wrong."""
        problems = (self._heartbeat.problem, *(each.problem for each in self._reflectors()))
        return next(filter(None, problems), "")

    def _reflectors(self) -> tuple[ReadableReflector, ...]:
        return (*self._of_inspect.values(), *self._beside)

    def _reflector(
        self,
        versions: tuple[Resource, ...],
        on_object: OnObject,
        said: Unreadable | None = None,
        *,
        field_selector: str = "",
    ) -> ReadableReflector:
        store = ObjectStore(self._lock, on_object, self._on_change)
        said = said or (lambda namespace: unreadable(versions[0], namespace=namespace))
        return ReadableReflector(
            self._api,
            versions,
            store,
            said,
            namespace=self._namespace,
            field_selector=field_selector,
        )

    def _notices(self) -> Iterator[str]:
        yield from filter(None, (each.missing for each in self._beside))
        yield from filter(None, (each.unwatched for each in self._reflectors()))

    def _groups_unread(self, namespace: str | None) -> str:
        """A server also forbids a kind that it does not have."""
        try:
            if not any(self._api.serves(each) for each in _GROUPS):
                return ""
        except KubeError:
            return ""
        where = "in all namespaces" if namespace is None else f"in the namespace {namespace}"
        return (
            f"you may not list podgroups of scheduling.k8s.io {where}: how many pods a group "
            "needs is not shown"
        )

    def _on_beat(self, *, is_back: bool) -> None:
        if is_back:
            for each in self._reflectors():
                each.reconnect()
        self._on_change()

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        self._inventory.on_pod(old, new)
        self._waiting = None
        _put(self._pods, uid_of, old, new)

    def _on_claim(self, old: Object | None, new: Object | None) -> None:
        self._inventory.on_claim(old, new)
        self._waiting = None
        _put(self._claims, full_name, old, new)

    def _on_class(self, old: Object | None, new: Object | None) -> None:
        self._waiting = None
        _put(self._classes, full_name, old, new)

    def _on_group(self, old: Object | None, new: Object | None) -> None:
        self._waiting = None
        _put(self._groups, full_name, old, new)

    def _read_waiting(self) -> dict[str, Any]:
        is_grouped = self._groups or any(map(group_name, self._pods.values()))
        groups = self._groups if is_grouped and not self._lacks_groups() else None
        found = WaitingObjects(self._pods.values(), self._claims, self._classes, groups)
        pods, named = waiting(found)
        return {
            "waiting": [asdict(each) for each in pods],
            "groups": [asdict(each) for each in named],
        }

    def _lacks_groups(self) -> bool:
        return any(each.missing for each in self._beside[1:])


class OnBeat(Protocol):
    """Called when the server is lost, and when it answers again."""

    def __call__(self, *, is_back: bool) -> None: ...


class Heartbeat(Background):
    """Asks the server for its version now and then: a watch alone does not notice a connection
    that broke without a word, as when a laptop slept. `problem` is why it does not answer."""

    def __init__(self, api: Api, on_beat: OnBeat) -> None:
        super().__init__("heartbeat")
        self._api = api
        self._on_beat = on_beat
        self.problem = ""

    def run(self) -> None:
        while not self._wait(_BEAT):
            self.beat()

    def beat(self) -> None:
        """Ask once."""
        was_lost = bool(self.problem)
        try:
            self._api.server_version()
        except KubeError as error:
            self.problem = str(error)
        else:
            self.problem = ""
        if was_lost != bool(self.problem):
            self._on_beat(is_back=was_lost)


def _classes_unread(_namespace: str | None) -> str:
    return (
        "you may not list deviceclasses: pods that wait for GCUs by a class of somebody's own are "
        "not shown"
    )


def _put(
    objects: dict[str, Object],
    key: Callable[[Object], str],
    old: Object | None,
    new: Object | None,
) -> None:
    if old is not None:
        objects.pop(key(old), None)
    if new is not None:
        objects[key(new)] = new
