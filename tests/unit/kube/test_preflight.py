"""Which servers are refused."""

from __future__ import annotations

from typing import cast

import pytest

from dra_driver.kube.api import Api, Listing, ServerVersion
from dra_driver.kube.errors import NotFound, Unavailable
from dra_driver.kube.preflight import check_server, check_visible, serves_dra
from dra_driver.kube.resources import DEVICE_CLASSES, Resource
from dra_driver.model.errors import Refused


@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_served(minor: int) -> None:
    check_server(ServerVersion(1, minor))


def test_older_ones_are_refused_with_the_reason() -> None:
    with pytest.raises(Refused) as refused:
        check_server(ServerVersion(1, 33, "v1.33.9"))
    assert "v1.33.9, which does not serve resource.k8s.io/v1" in refused.value.what
    assert "1.34 or newer" in refused.value.remedy


@pytest.mark.parametrize("minor", [36, 37])
def test_visible_slices_are_for_servers_with_taints(minor: int) -> None:
    check_visible(ServerVersion(1, minor))


@pytest.mark.parametrize("minor", [34, 35])
def test_visible_slices_are_refused_where_taints_are_dropped(minor: int) -> None:
    with pytest.raises(Refused) as refused:
        check_visible(ServerVersion(1, minor, f"v1.{minor}.4"))
    assert f"v1.{minor}.4, which drops device taints" in refused.value.what
    assert "sliceForm" in refused.value.remedy


class Server:
    """Says its version; `error` is what it answers to a list of DeviceClasses."""

    def __init__(self, minor: int, error: Exception | None = None) -> None:
        self._minor = minor
        self._error = error

    def server_version(self) -> ServerVersion:
        return ServerVersion(1, self._minor)

    def list(self, resource: Resource) -> Listing:
        assert resource is DEVICE_CLASSES
        if self._error is not None:
            raise self._error
        return Listing((), "1")


@pytest.mark.parametrize(
    ("server", "serves"),
    [
        (Server(36), True),
        (Server(35), True),
        (Server(34), True),
        (Server(33), False),
        (Server(30, NotFound("no such group")), False),
        (Server(36, NotFound("no such group")), False),
    ],
    ids=["1.36", "1.35", "1.34", "1.33", "1.30", "switched off"],
)
def test_whether_there_is_dra_that_would_do(server: Server, serves: bool) -> None:
    assert serves_dra(cast("Api", server)) is serves


def test_a_server_that_does_not_say_is_not_taken_for_one_without() -> None:
    with pytest.raises(Unavailable):
        serves_dra(cast("Api", Server(36, Unavailable("no answer"))))
