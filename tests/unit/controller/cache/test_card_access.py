"""What a pod's spec shows of cards that nobody allocated to it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from controller.cache.card_access import direct_access
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from tests.unit.controller.informers.decoded import decoded

ALL = {"name": "ENFLAME_VISIBLE_DEVICES", "value": "all"}
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}


def pod(*, status: Object | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"namespace": "team", "name": "p", "uid": "u"},
        "spec": {"nodeName": "a", "containers": [{"name": "main"}]} | spec,
        "status": status or {},
    }


def container(*env: Object, **resources: Object) -> list[Object]:
    return [{"name": "main", "env": list(env), "resources": resources}]


def volume(path: str) -> Object:
    return {"name": "v", "hostPath": {"path": path}}


BY_ALL = ["ENFLAME_VISIBLE_DEVICES=all"]
CASES: dict[str, tuple[Object, list[str]]] = {
    "nothing": (pod(), []),
    "a container": (pod(containers=container(ALL)), BY_ALL),
    "an init container": (pod(initContainers=container(ALL)), BY_ALL),
    "an ephemeral container": (pod(ephemeralContainers=container(ALL)), BY_ALL),
    "two containers": (pod(containers=container(ALL) * 2), BY_ALL),
    "from a field": (
        pod(containers=container({"name": "ENFLAME_VISIBLE_DEVICES", "valueFrom": FIELD})),
        ["ENFLAME_VISIBLE_DEVICES from elsewhere"],
    ),
    "no card": (pod(containers=container(ALL | {"value": "none"})), []),
    "no value": (pod(containers=container({"name": "ENFLAME_VISIBLE_DEVICES"})), []),
    "another variable": (pod(containers=container(ALL | {"name": "PATH"})), []),
    "a device node": (pod(volumes=[volume("/dev/gcu0")]), ["the hostPath /dev/gcu0"]),
    "the same, spelled otherwise": (
        pod(volumes=[volume("//./dev//./gcuctl")]),
        ["the hostPath //./dev//./gcuctl"],
    ),
    "another volume": (
        pod(volumes=[volume("/data/dev/gcu"), volume("/dev"), {"name": "e", "emptyDir": {}}]),
        [],
    ),
    "the vendor's RuntimeClass": (pod(runtimeClassName="enflame"), ["the RuntimeClass enflame"]),
    "another RuntimeClass": (pod(runtimeClassName="kata"), []),
    "all of them": (
        pod(
            containers=container(ALL),
            volumes=[volume("/dev/gcu1")],
            runtimeClassName="enflame",
        ),
        [*BY_ALL, "the RuntimeClass enflame", "the hostPath /dev/gcu1"],
    ),
    "a claim": (
        pod(containers=container(ALL), resourceClaims=[{"name": "c", "resourceClaimName": "c"}]),
        [],
    ),
    "limits": (pod(containers=container(ALL, requests={"enflame.com/shared-gcu": "1"})), []),
    "a limit that gives no card": (
        pod(containers=container(ALL, requests={"enflame.com/gcu-count": "1"})),
        BY_ALL,
    ),
    "a claim that kube-scheduler made": (
        pod(
            containers=container(ALL, requests={"example.com/card": "1"}),
            status={"extendedResourceClaimStatus": {"resourceClaimName": "made"}},
        ),
        [],
    ),
}


@pytest.mark.parametrize(("found", "ways"), CASES.values(), ids=CASES)
def test_ways_to_cards(found: Object, ways: list[str]) -> None:
    assert direct_access(found, {"enflame"}) == ways


@pytest.mark.parametrize(("found", "ways"), CASES.values(), ids=CASES)
def test_ways_of_what_the_controller_decodes(found: Object, ways: list[str]) -> None:
    assert direct_access(decoded(PODS, copy.deepcopy(found)), {"enflame"}) == ways


def test_what_is_not_read_is_not_kept() -> None:
    found = pod(
        containers=container(ALL, {"name": "OTHER", "value": "1"}),
        ephemeralContainers=container({"name": "OTHER", "value": "1"}),
        volumes=[volume("/data"), volume("/dev/gcu0")],
    )
    spec = decoded(PODS, found)["spec"]
    assert spec["containers"][0]["env"] == [ALL]
    assert spec["volumes"] == [volume("/dev/gcu0")]
    assert "ephemeralContainers" not in spec
