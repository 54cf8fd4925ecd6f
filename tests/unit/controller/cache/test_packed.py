"""A packed object reads as the object that it was made from."""

from __future__ import annotations

import copy
from types import MappingProxyType

import pytest

from bench import lists
from controller.cache.interner import Interner
from controller.cache.packed import Fields, PackedObject, unpacked
from controller.informers.decoders import decoders
from dra_driver.kube.encode import encode
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object

OBJECT: Object = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"node": "a", "tasks": [1]}}


@pytest.mark.parametrize(
    "alike",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"spec": ("tasks",)}, id="a field"),
        pytest.param({"spec": ("tasks", "node")}, id="a whole section"),
        pytest.param({"spec": ("tasks", "other"), "status": ("phase",)}, id="more than there is"),
    ],
)
def test_it_reads_as_the_object(alike: Fields) -> None:
    obj = copy.deepcopy(OBJECT)
    found = PackedObject(Interner(), alike, obj)
    assert obj == OBJECT
    assert found == OBJECT
    assert unpacked(found) == OBJECT
    assert {**found} == OBJECT
    assert (len(found), found.get("status"), "spec" in found) == (3, None, True)


def test_a_dict_is_its_own_unpacked_form() -> None:
    assert unpacked(OBJECT) is OBJECT
    assert unpacked(MappingProxyType(OBJECT)) == OBJECT


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        pytest.param(RESOURCE_CLAIMS, lists.claim(1), True, id="a claim in use"),
        pytest.param(PODS, lists.pod(1), True, id="a bound pod"),
        pytest.param(PODS, lists.other_pod(1), True, id="a bound pod without claims"),
        pytest.param(RESOURCE_CLAIMS, lists.claim(1) | {"status": {}}, False, id="a free claim"),
        pytest.param(
            PODS,
            lists.pod(1) | {"spec": lists.pod(1)["spec"] | {"nodeName": ""}},
            False,
            id="a pod that waits",
        ),
    ],
)
def test_what_a_cluster_has_many_of_is_packed(kind: Resource, obj: Object, expected: bool) -> None:
    assert isinstance(decoders()[kind].decode(encode(obj)), PackedObject) is expected
