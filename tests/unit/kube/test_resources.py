"""Paths of the API."""

from __future__ import annotations

import pytest

from dra_driver.kube.api import ServerVersion
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.errors import InvalidValue


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("default",), "/api/v1/namespaces/default/pods"),
        (NODES, ("", "a"), "/api/v1/nodes/a"),
        (
            RESOURCE_CLAIMS,
            ("ns", "c", "status"),
            "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status",
        ),
        (PODS, ("n", "a/../b"), "/api/v1/namespaces/n/pods/a%2F..%2Fb"),
    ],
)
def test_path(resource: Resource, arguments: tuple[str, ...], path: str) -> None:
    assert resource.path(*arguments) == path


@pytest.mark.parametrize("name", [".", "..", "\ud800"], ids=repr)
@pytest.mark.parametrize("namespace", ["", "team"], ids=["as namespace", "as name"])
def test_what_no_object_can_be_called(namespace: str, name: str) -> None:
    with pytest.raises(InvalidValue, match="is no name of an API object"):
        PODS.path(namespace or name, name if namespace else "a")


def test_version_of_vendors() -> None:
    answer = {"major": "1", "minor": "36+", "gitVersion": "v1.36.3-vendor.1"}
    assert ServerVersion.parse(answer) == ServerVersion(1, 36, "v1.36.3-vendor.1")
    assert str(ServerVersion.parse(answer)) == "v1.36.3-vendor.1"


def test_a_server_that_plays_an_older_version_is_of_that_one() -> None:
    answer = {
        "major": "1",
        "minor": "37",
        "gitVersion": "v1.37.2",
        "emulationMajor": "1",
        "emulationMinor": "34",
    }
    played = ServerVersion.parse(answer)
    assert (played.major, played.minor) == (1, 34)
    assert str(played) == "v1.37.2 that emulates 1.34"
    itself = ServerVersion.parse({**answer, "emulationMinor": "37"})
    assert itself == ServerVersion(1, 37, "v1.37.2")


def test_no_version() -> None:
    with pytest.raises(InvalidValue, match="no version number"):
        ServerVersion.parse({"major": "", "minor": ""})
