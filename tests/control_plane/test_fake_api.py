"""The fake API server answers our client as a real one does: each test is of both."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from dra_driver.kube import client as client_module
from dra_driver.kube import errors
from dra_driver.kube.api import Change, PatchType, WatchEvent
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import (
    BINDINGS,
    LEASES,
    NODES,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object, allocation_owners
from dra_driver.model.effects import Effects
from dra_driver.model.names import DRIVER, SCHEDULING_GATE
from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane import components
from tests.control_plane.objects import claim, pod_with, resource_slice, whole
from tests.fake_api.api import FakeApi
from tests.fake_api.server import FakeServer

pytestmark = pytest.mark.control_plane

FINALIZER = "example.com/hold"
ALLOCATION: Object = {"devices": {}}


@dataclass(frozen=True, slots=True)
class Side:
    """A server, and a namespace of the test's own on it."""

    api: Client
    namespace: str
    connect: Callable[[str], Client]
    expire: Callable[[], None]

    def make(self, name: str, **metadata: object) -> Object:
        """A claim."""
        body = claim(name, self.namespace)
        body["metadata"] |= metadata
        return self.api.create(RESOURCE_CLAIMS, body)

    def claim(self, name: str) -> Object:
        return self.api.get(RESOURCE_CLAIMS, name, namespace=self.namespace)

    def names(self, *, labels: str = "", fields: str = "") -> list[str]:
        found = self.api.list(
            RESOURCE_CLAIMS,
            namespace=self.namespace,
            label_selector=labels,
            field_selector=fields,
        ).items
        return [each["metadata"]["name"] for each in found]

    def patch(self, name: str, body: Object, subresource: str = "") -> Object:
        return self.api.patch(
            RESOURCE_CLAIMS, name, body, namespace=self.namespace, subresource=subresource
        )

    def delete(self, name: str, **preconditions: str) -> None:
        self.api.delete(RESOURCE_CLAIMS, name, namespace=self.namespace, **preconditions)

    def events(self, version: str, count: int, labels: str = "") -> list[WatchEvent]:
        """So many changes of claims after that version."""
        watch = self.api.watch(
            RESOURCE_CLAIMS,
            resource_version=version,
            namespace=self.namespace,
            label_selector=labels,
            timeout=20.0,
        )
        found = []
        for event in watch:
            if event.change is not Change.BOOKMARK:
                found.append(event)
            if len(found) == count:
                watch.close()
        return found

    def version(self) -> str:
        return self.api.list(RESOURCE_CLAIMS, namespace=self.namespace).resource_version


@pytest.fixture(params=["played", "real"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Side]:
    if request.param == "real":
        cluster = request.getfixturevalue("control_plane")
        namespace = request.getfixturevalue("namespace")
        connect_as = partial(_connect, cluster.kubeconfig)
        with closing(connect_as("tests")) as api:
            yield Side(api, namespace, connect_as, lambda: _restart(cluster))
        return
    fake = FakeApi()
    server = FakeServer(fake, tmp_path / "kubeconfig")
    connect_as = partial(_connect, server.kubeconfig)
    with closing(server), closing(connect_as("tests")) as api:
        yield Side(api, "team", connect_as, fake.store.expire)


def _connect(kubeconfig: Path, user: str) -> Client:
    return connect(kubeconfig, effects=Effects(), user_agent=f"{user}/1")


def _restart(cluster: Cluster) -> None:
    """An API server that begins knows no changes from before."""
    components.restart(cluster, "kube-apiserver")
    wait_until(
        lambda: cluster.kubectl("get", "--raw=/readyz") == "ok",
        PATIENCE,
        "the API server ready again",
        retry_on=(CommandError,),
    )


def told(events: list[WatchEvent]) -> list[tuple[Change, str]]:
    return [(each.change, each.object["metadata"]["name"]) for each in events]


def test_what_it_is_and_serves(side: Side) -> None:
    assert side.api.server_version().major == 1
    assert side.api.serves(RESOURCE_CLAIMS)
    assert side.api.serves(PODS)
    assert not side.api.serves(replace(RESOURCE_CLAIMS, plural="others"))
    assert not side.api.serves(replace(RESOURCE_CLAIMS, version="v9"))


def test_what_is_stored_has_a_name_and_a_version(side: Side) -> None:
    body = claim("", side.namespace)
    body["metadata"] = {"generateName": "made-", "namespace": side.namespace}
    made = side.api.create(RESOURCE_CLAIMS, body)
    assert made["metadata"]["name"].startswith("made-")
    assert made == side.claim(made["metadata"]["name"])
    assert {"uid", "creationTimestamp", "resourceVersion"} <= made["metadata"].keys()
    assert (made["apiVersion"], made["kind"]) == ("resource.k8s.io/v1", "ResourceClaim")
    tried = side.api.create(RESOURCE_CLAIMS, claim("tried", side.namespace), dry_run=True)
    assert tried["metadata"]["uid"]
    assert side.names() == [made["metadata"]["name"]]


def test_what_is_not_there_and_what_is(side: Side) -> None:
    with pytest.raises(errors.NotFound) as missing:
        side.claim("none")
    assert missing.value.reason == "NotFound"
    made = side.make("one")
    with pytest.raises(errors.AlreadyExists):
        side.make("one")
    with pytest.raises(errors.NotFound):
        side.api.replace(RESOURCE_CLAIMS, made | {"metadata": made["metadata"] | {"name": "none"}})
    with pytest.raises(errors.NotFound):
        side.patch("none", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(errors.NotFound):
        side.delete("none")
    with pytest.raises(errors.NotFound):
        side.api.list(POD_GROUPS)


def test_an_older_version_is_refused(side: Side) -> None:
    first = side.make("one")
    second = side.patch("one", {"metadata": {"labels": {"a": "b"}}})
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    for subresource in ("", "status"):
        with pytest.raises(errors.Conflict) as conflict:
            side.api.replace(RESOURCE_CLAIMS, first, subresource=subresource)
        assert conflict.value.reason == "Conflict"
    with pytest.raises(errors.Conflict):
        side.patch("one", {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}})
    with pytest.raises(errors.Conflict):
        side.api.add_metadata(RESOURCE_CLAIMS, first, annotations={"a": "b"})
    another = second | {"metadata": second["metadata"] | {"uid": "another"}}
    with pytest.raises(errors.Conflict):
        side.api.replace(RESOURCE_CLAIMS, another)
    with pytest.raises(errors.Invalid):
        side.patch("one", {"metadata": {"uid": "another", "labels": {"a": "c"}}})
    assert side.claim("one") == second


def test_a_change_of_nothing_is_none(side: Side) -> None:
    side.make("one")
    labelled = side.patch("one", {"metadata": {"labels": {"a": "b"}}})
    again = side.patch("one", {"metadata": {"labels": {"a": "b"}}})
    assert again["metadata"]["resourceVersion"] == labelled["metadata"]["resourceVersion"]


def test_merge_patches(side: Side) -> None:
    side.make("one", labels={"a": "1", "b": "2"}, finalizers=[FINALIZER, "example.com/other"])
    made = side.patch(
        "one", {"metadata": {"labels": {"a": None, "c": "3"}, "finalizers": [FINALIZER]}}
    )
    assert made["metadata"]["labels"] == {"b": "2", "c": "3"}
    assert made["metadata"]["finalizers"] == [FINALIZER]
    assert side.claim("one") == made
    side.patch("one", {"metadata": {"finalizers": None}})


def test_strategic_patches_of_pods(side: Side) -> None:
    gates = [{"name": SCHEDULING_GATE}, {"name": "example.com/gate"}]
    side.api.create(PODS, pod_with("one", side.namespace, schedulingGates=gates))

    def patch(body: Object, subresource: str = "") -> Object:
        return side.api.patch(
            PODS,
            "one",
            body,
            namespace=side.namespace,
            patch_type=PatchType.STRATEGIC_MERGE,
            subresource=subresource,
        )

    with pytest.raises(errors.Invalid):
        patch({"metadata": {"uid": "another"}, "spec": {"schedulingGates": []}})
    lifted = patch({"spec": {"schedulingGates": [{"$patch": "delete", "name": SCHEDULING_GATE}]}})
    assert lifted["spec"]["schedulingGates"] == gates[1:]
    first, second = (
        {"type": name, "status": "False", "reason": "Waits"} for name in ("example.com/a", "Ready")
    )
    patch({"status": {"conditions": [first, second]}}, "status")
    changed = first | {"status": "True"}
    made = patch({"status": {"conditions": [changed], "nominatedNodeName": "a"}}, "status")
    found = {each["type"]: each["status"] for each in made["status"]["conditions"]}
    assert (found["example.com/a"], found["Ready"]) == ("True", "False")
    assert made["status"]["nominatedNodeName"] == "a"


def test_a_status_is_written_apart_from_the_rest(side: Side) -> None:
    made = side.make("one", finalizers=[FINALIZER])
    body = copy.deepcopy(made) | {"status": {"allocation": ALLOCATION}}
    body["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    written = side.api.replace(RESOURCE_CLAIMS, body, subresource="status")
    assert written["status"]["allocation"] == ALLOCATION
    assert written["spec"] == made["spec"]
    assert written["metadata"]["finalizers"] == [FINALIZER]
    kept = side.api.replace(RESOURCE_CLAIMS, without_status(written, labels={"a": "b"}))
    assert kept["metadata"]["labels"] == {"a": "b"}
    assert kept["status"] == written["status"]
    cleared = side.patch("one", {"status": None}, "status")
    assert cleared["status"] == {}
    side.patch("one", {"metadata": {"finalizers": None}})


def without_status(obj: Object, **metadata: object) -> Object:
    kept = {key: each for key, each in obj.items() if key != "status"}
    return kept | {"metadata": obj["metadata"] | metadata}


def test_who_wrote_an_allocation(side: Side) -> None:
    made = side.make("one", finalizers=[FINALIZER])
    with closing(side.connect("allocator")) as allocator, closing(side.connect("user")) as user:
        allocated = allocator.replace(
            RESOURCE_CLAIMS, made | {"status": {"allocation": ALLOCATION}}, subresource="status"
        )
        assert writers(allocated) == ["allocator"]
        # kube-controller-manager takes away what is reserved for a pod that does not exist.
        users = [{"apiGroup": "example.com", "resource": "jobs", "name": "one", "uid": "1"}]
        status = allocated["status"] | {"reservedFor": users}
        reserved = user.replace(
            RESOURCE_CLAIMS, allocated | {"status": status}, subresource="status"
        )
        assert writers(reserved) == ["allocator"]
        cleared = user.replace(RESOURCE_CLAIMS, reserved | {"status": {}}, subresource="status")
        assert writers(cleared) == []
        again = user.replace(
            RESOURCE_CLAIMS, cleared | {"status": {"allocation": ALLOCATION}}, subresource="status"
        )
        assert writers(again) == ["user"]
        user.patch(
            RESOURCE_CLAIMS, "one", {"status": None}, namespace=side.namespace, subresource="status"
        )
    side.patch("one", {"metadata": {"finalizers": None}})


def writers(found: Object) -> list[str]:
    return [each["manager"] for each in allocation_owners(found)]


def test_metadata_is_added(side: Side) -> None:
    body = claim("one", side.namespace)
    opaque: Object = {"driver": DRIVER, "parameters": {"a": 1}}
    body["spec"]["devices"]["config"] = [{"opaque": opaque}]
    body["metadata"] |= {"finalizers": [FINALIZER], "annotations": {"a": "1"}}
    made = side.api.create(RESOURCE_CLAIMS, body)
    added = side.api.add_metadata(
        RESOURCE_CLAIMS, made, finalizers=["example.com/more"], annotations={"a": "2", "b": "3"}
    )
    assert added["metadata"]["finalizers"] == [FINALIZER, "example.com/more"]
    assert added["metadata"]["annotations"] == {"a": "2", "b": "3"}
    assert added["spec"] == made["spec"]
    side.delete("one")
    side.api.add_metadata(RESOURCE_CLAIMS, side.claim("one"), annotations={"c": "4"})


def test_a_delete_of_what_was_meant(side: Side) -> None:
    first = side.make("one")["metadata"]
    with pytest.raises(errors.Conflict):
        side.delete("one", uid="another")
    side.patch("one", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(errors.Conflict):
        side.delete("one", uid=first["uid"], resource_version=first["resourceVersion"])
    side.delete("one", uid=first["uid"])
    with pytest.raises(errors.NotFound):
        side.claim("one")


def test_a_finalizer_holds_what_is_deleted(side: Side) -> None:
    side.make("one", finalizers=[FINALIZER])
    version = side.version()
    side.delete("one")
    ending = side.claim("one")
    assert ending["metadata"]["deletionTimestamp"]
    side.delete("one")
    assert side.claim("one") == ending
    side.patch("one", {"metadata": {"finalizers": None}})
    with pytest.raises(errors.NotFound):
        side.claim("one")
    events = side.events(version, 2)
    assert told(events) == [(Change.MODIFIED, "one"), (Change.DELETED, "one")]


def test_a_list_in_pages(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAGE", 2)
    names = [f"claim-{number}" for number in range(5)]
    for name in names:
        side.make(name)
    listing = side.api.list(RESOURCE_CLAIMS, namespace=side.namespace)
    assert [each["metadata"]["name"] for each in listing.items] == names
    assert int(listing.resource_version) >= int(
        side.claim(names[-1])["metadata"]["resourceVersion"]
    )
    everywhere = side.api.list_metadata(RESOURCE_CLAIMS).items
    here = [each for each in everywhere if each["metadata"]["namespace"] == side.namespace]
    assert [each["metadata"] for each in here] == [each["metadata"] for each in listing.items]
    assert not any("spec" in each for each in everywhere)


def test_selectors(side: Side) -> None:
    for name, labels in (("a", {"role": "x"}), ("b", {"role": "y"}), ("c", {})):
        side.make(name, labels=labels)
    assert side.names(labels="role=x") == ["a"]
    assert side.names(labels="role!=x") == ["b", "c"]
    assert side.names(labels="role") == ["a", "b"]
    assert side.names(labels="role,role!=y") == ["a"]
    assert side.names(fields="metadata.name=b") == ["b"]
    assert side.names(labels="role=y", fields="metadata.name=a") == []


def test_fields_of_pods_and_slices(side: Side) -> None:
    node = f"node-{side.namespace}"
    bound = pod_with("bound", side.namespace, nodeName=node, schedulerName="theirs")
    for body in (bound, pod_with("waiting", side.namespace, schedulerName="theirs")):
        side.api.create(PODS, body)
    side.api.create(RESOURCE_SLICES, resource_slice(node, [whole(0)]))

    def names(resource: Resource, selector: str, namespace: str = "") -> list[str]:
        found = side.api.list(resource, namespace=namespace, field_selector=selector).items
        return [each["metadata"]["name"] for each in found]

    assert names(PODS, f"spec.nodeName={node}") == ["bound"]
    assert names(PODS, "spec.nodeName=", side.namespace) == ["waiting"]
    theirs = "spec.schedulerName=theirs,spec.nodeName!="
    assert names(PODS, theirs, side.namespace) == ["bound"]
    assert names(RESOURCE_SLICES, f"spec.driver={DRIVER},spec.nodeName={node}") == [f"{node}-0"]
    assert names(RESOURCE_SLICES, f"spec.nodeName={node}x") == []
    side.api.delete(RESOURCE_SLICES, f"{node}-0")


def test_a_watch_from_a_version(side: Side) -> None:
    side.make("before")
    version = side.version()
    side.make("one")
    changed = side.patch("one", {"metadata": {"labels": {"a": "b"}}})
    side.delete("one")
    events = side.events(version, 3)
    assert told(events) == [
        (Change.ADDED, "one"),
        (Change.MODIFIED, "one"),
        (Change.DELETED, "one"),
    ]
    assert events[1].object == changed
    gone = events[2].object["metadata"]
    assert int(gone["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])
    assert gone["uid"] == changed["metadata"]["uid"]


def test_a_watch_of_what_is_selected(side: Side) -> None:
    version = side.version()
    side.make("other", labels={"role": "y"})
    side.make("one", labels={"role": "x"})
    side.patch("one", {"metadata": {"labels": {"role": "y"}}})
    side.patch("one", {"metadata": {"labels": {"role": "x"}}})
    events = side.events(version, 3, labels="role=x")
    assert told(events) == [(Change.ADDED, "one"), (Change.DELETED, "one"), (Change.ADDED, "one")]
    versions = [int(each.object["metadata"]["resourceVersion"]) for each in events]
    assert versions == sorted(versions)
    assert events[1].object["metadata"]["labels"] == {"role": "x"}


def test_a_watch_ends_after_its_time(side: Side) -> None:
    version = side.version()
    watch = side.api.watch(
        RESOURCE_CLAIMS, resource_version=version, namespace=side.namespace, timeout=1.0
    )
    assert all(event.change is Change.BOOKMARK for event in watch)


def test_a_version_that_has_expired(side: Side) -> None:
    version = side.version()
    side.make("one")
    side.expire()
    watch_from = partial(side.api.watch, RESOURCE_CLAIMS, namespace=side.namespace, timeout=5.0)
    with pytest.raises(errors.Gone):
        list(watch_from(resource_version=version))
    now = side.version()
    side.make("two")
    [event, *_] = watch_from(resource_version=now)
    assert event.object["metadata"]["name"] == "two"


def test_a_pod_is_bound_once(side: Side) -> None:
    pod = side.api.create(PODS, pod_with("one", side.namespace))
    metadata = {
        "name": "one",
        "namespace": side.namespace,
        "uid": pod["metadata"]["uid"],
        "annotations": {"a": "b"},
    }
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-1"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    side.api.create(BINDINGS, body)
    bound = side.api.get(PODS, "one", namespace=side.namespace)
    assert bound["spec"]["nodeName"] == "node-1"
    assert bound["metadata"]["annotations"]["a"] == "b"
    with pytest.raises(errors.Conflict):
        side.api.create(BINDINGS, body)


def test_nodes_and_leases(side: Side) -> None:
    """Kinds without a namespace, and the one of elections."""
    name = f"node-{side.namespace}"
    side.api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    cordoned = side.api.patch(NODES, name, {"spec": {"unschedulable": True}})
    assert cordoned["spec"]["unschedulable"]
    opened = side.api.patch(NODES, name, {"spec": {"unschedulable": None}})
    assert "unschedulable" not in opened["spec"]
    side.api.delete(NODES, name)
    lease: Object = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": "leader", "namespace": side.namespace},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15},
    }
    made = side.api.create(LEASES, lease)
    taken = made | {"spec": made["spec"] | {"holderIdentity": "b"}}
    assert side.api.replace(LEASES, taken)["spec"]["holderIdentity"] == "b"
    with pytest.raises(errors.Conflict):
        side.api.replace(LEASES, taken)
    side.api.delete(LEASES, "leader", namespace=side.namespace)
    with pytest.raises(errors.Conflict):  # not NotFound: a Lease may be made by a PUT
        side.api.replace(LEASES, taken)
