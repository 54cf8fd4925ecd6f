"""Our client against a real API server: the errors and streams that it must understand."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dra_driver.kube import errors
from dra_driver.kube.api import Change, PatchType
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import LEASES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects, Point
from dra_driver.model.names import FINALIZER
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.objects import claim

pytestmark = pytest.mark.control_plane

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)


def config_map(name: str, namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
    }


def test_it_says_which_server_it_is(api: Client) -> None:
    assert (api.server_version().major, api.server_version().minor) >= (1, 36)


def test_it_says_what_it_serves(api: Client) -> None:
    assert api.serves(RESOURCE_SLICES)
    assert api.serves(CONFIG_MAPS)
    assert not api.serves(replace(RESOURCE_SLICES, plural="others"))
    assert not api.serves(replace(RESOURCE_SLICES, version="v9"))


def test_unknown_objects_and_conflicts(api: Client, namespace: str) -> None:
    with pytest.raises(errors.NotFound):
        api.get(RESOURCE_CLAIMS, "none", namespace=namespace)
    first = api.create(RESOURCE_CLAIMS, claim("one", namespace))
    with pytest.raises(errors.AlreadyExists):
        api.create(RESOURCE_CLAIMS, claim("one", namespace))
    labelled = first | {"metadata": first["metadata"] | {"labels": {"a": "b"}}}
    api.replace(RESOURCE_CLAIMS, labelled)
    with pytest.raises(errors.Conflict):
        api.replace(RESOURCE_CLAIMS, labelled | {"spec": first["spec"]})
    with pytest.raises(errors.Invalid):
        api.create(RESOURCE_CLAIMS, claim("two", namespace, count=-1))


@pytest.mark.parametrize(
    "parameters",
    [
        '{"b":1,"a":"x"}',
        '{"b": 1,  "a": "x"}',
        '{"n":1.0,"e":1e3,"s":"<&>","u":"\\u00e9é"}',
        '{"a":[' * 1000 + "]}" * 1000,
    ],
    ids=["compact", "white space", "numbers and escapes", "deeper than Python reads"],
)
def test_metadata_is_added_beside_any_opaque_parameters(
    api: Client, control_plane: Cluster, namespace: str, parameters: str
) -> None:
    opaque = {"opaque": {"driver": "gcu.enflame.com", "parameters": "HERE"}}
    made = claim("one", namespace)
    made["spec"]["devices"]["config"] = [opaque]
    body = json.dumps(made).replace('"HERE"', parameters)
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    # As it is: kubectl's own reading would bring the parameters into another form.
    control_plane.kubectl("create", f"--raw={path}", "--filename=-", stdin=body)
    stored = api.get(RESOURCE_CLAIMS, "one", namespace=namespace)
    [listed] = api.list(RESOURCE_CLAIMS, namespace=namespace).items
    assert listed["metadata"] == stored["metadata"]
    marked = api.add_metadata(RESOURCE_CLAIMS, stored, annotations={"a": "1", "b": "1"})
    protected = api.add_metadata(
        RESOURCE_CLAIMS, marked, finalizers=[FINALIZER], annotations={"a": "2"}
    )
    assert protected["metadata"]["finalizers"] == [FINALIZER]
    assert protected["metadata"]["annotations"] == {"a": "2", "b": "1"}
    assert protected["spec"] == stored["spec"]
    with pytest.raises(errors.Conflict):
        api.add_metadata(RESOURCE_CLAIMS, stored, annotations={"a": "3"})
    # The finalizer is upstream's to take away, and no client that speaks JSON could.
    api.delete(RESOURCE_CLAIMS, "one", namespace=namespace)
    wait_until(
        lambda: not api.list(RESOURCE_CLAIMS, namespace=namespace).items,
        PATIENCE,
        "the claim's end",
    )


def test_delete_takes_only_the_object_that_was_meant(api: Client, namespace: str) -> None:
    made = api.create(RESOURCE_CLAIMS, claim("one", namespace))
    with pytest.raises(errors.Conflict):
        api.delete(RESOURCE_CLAIMS, "one", namespace=namespace, uid="another")
    api.delete(RESOURCE_CLAIMS, "one", namespace=namespace, uid=made["metadata"]["uid"])
    with pytest.raises(errors.NotFound):
        api.get(RESOURCE_CLAIMS, "one", namespace=namespace)


def test_patches(api: Client, namespace: str) -> None:
    api.create(CONFIG_MAPS, config_map("one", namespace))
    merged = api.patch(CONFIG_MAPS, "one", {"data": {"a": "1"}}, namespace=namespace)
    assert merged["data"] == {"a": "1"}
    operation = {"op": "replace", "path": "/data/a", "value": "2"}
    patched = api.patch(
        CONFIG_MAPS, "one", [operation], namespace=namespace, patch_type=PatchType.JSON
    )
    assert patched["data"] == {"a": "2"}
    applied = api.patch(
        CONFIG_MAPS,
        "two",
        config_map("two", namespace) | {"data": {"b": "3"}},
        namespace=namespace,
        patch_type=PatchType.APPLY,
        field_manager="tests",
    )
    assert applied["data"] == {"b": "3"}


def test_a_list_of_many_pages(api: Client, namespace: str) -> None:
    for number in range(501):
        api.create(CONFIG_MAPS, config_map(f"c{number}", namespace))
    found = api.list(CONFIG_MAPS, namespace=namespace)
    assert len({each["metadata"]["name"] for each in found.items}) == 502  # and the cluster's CA
    assert {(each["apiVersion"], each["kind"]) for each in found.items} == {("v1", "ConfigMap")}
    everywhere = api.list_metadata(CONFIG_MAPS).items
    here = [each for each in everywhere if each["metadata"]["namespace"] == namespace]
    assert [each["metadata"] for each in here] == [each["metadata"] for each in found.items]
    assert not any("data" in each for each in everywhere)


def test_a_watch_tells_what_happens(api: Client, namespace: str) -> None:
    # kube-controller-manager puts one into each namespace.
    wait_until(lambda: api.list(CONFIG_MAPS, namespace=namespace).items, PATIENCE, "its own object")
    listed = api.list(CONFIG_MAPS, namespace=namespace)
    api.create(CONFIG_MAPS, config_map("new", namespace))
    api.delete(CONFIG_MAPS, "new", namespace=namespace)
    watch = api.watch(
        CONFIG_MAPS, namespace=namespace, resource_version=listed.resource_version, timeout=10
    )
    told: list[tuple[Change, str]] = []
    for event in watch:
        told.append((event.change, event.object["metadata"].get("name", "")))
        if event.change is Change.DELETED:
            watch.close()
    assert told[-2:] == [(Change.ADDED, "new"), (Change.DELETED, "new")]


def test_a_quiet_watch_is_closed_from_another_thread(api: Client, namespace: str) -> None:
    version = api.list(CONFIG_MAPS, namespace=namespace).resource_version
    watch = api.watch(
        CONFIG_MAPS, namespace=namespace, resource_version=version, label_selector="none=none"
    )
    reader = threading.Thread(target=lambda: list(watch))
    reader.start()
    reader.join(0.3)
    assert reader.is_alive()
    watch.close()
    watch.close()
    reader.join(5)
    assert not reader.is_alive()


def test_what_is_not_allowed_is_forbidden(controller_kubeconfig: Path, namespace: str) -> None:
    with closing(connect(controller_kubeconfig, effects=Effects(), user_agent="tests/1")) as client:
        with pytest.raises(errors.Forbidden, match="cannot delete"):
            client.delete(PODS, "any", namespace=namespace)
        with pytest.raises(errors.Forbidden):
            client.get(LEASES, "another", namespace=namespace)


def test_a_server_that_is_away(api: Client, tmp_path: Path, controller_kubeconfig: Path) -> None:
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(controller_kubeconfig.read_text().replace(":6443", ":1"))
    away = connect(nowhere, effects=Effects(), user_agent="tests/1")
    with pytest.raises(errors.Unavailable, match="did not answer GET /version"):
        away.server_version()


def test_every_write_passes_the_seam(controller_kubeconfig: Path, api: Client) -> None:
    class Counting(Effects):
        def __init__(self) -> None:
            self.points: list[Point] = []

        def before(self, point: Point) -> None:
            self.points.append(point)

    effects = Counting()
    with closing(connect(controller_kubeconfig, effects=effects, user_agent="tests/1")) as client:
        client.server_version()
        assert effects.points == []
        with pytest.raises(errors.Forbidden):
            client.delete(PODS, "any", namespace="default")
    assert effects.points == [Point.API_WRITE]
