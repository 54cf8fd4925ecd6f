"""Which servers are refused."""

from __future__ import annotations

from typing import cast

import pytest

from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.preflight import check_server, check_visible, missing_dra
from dra_driver.kube.resources import RESOURCE_SLICES, Resource
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
    """Serves DRA, or not; `error` is what it answers in place of what it serves."""

    def __init__(self, *, dra: bool, error: Exception | None = None) -> None:
        self._dra = dra
        self._error = error

    def serves(self, resource: Resource) -> bool:
        assert resource is RESOURCE_SLICES
        if self._error is not None:
            raise self._error
        return self._dra


@pytest.mark.parametrize(
    ("minor", "dra", "missing"),
    [
        (36, True, ""),
        (34, True, ""),
        (33, True, "v1.33, and DRA is used from 1.34 on"),
        (30, False, "v1.30, and DRA is used from 1.34 on"),
        (36, False, "v1.36 does not serve resource.k8s.io/v1"),
    ],
    ids=["1.36", "1.34", "1.33", "1.30", "switched off"],
)
def test_whether_there_is_dra_that_would_do(minor: int, dra: bool, missing: str) -> None:
    said = missing_dra(cast("Api", Server(dra=dra)), ServerVersion(1, minor))
    assert said == (missing and said)
    assert missing in said


def test_a_server_that_does_not_say_is_not_taken_for_one_without() -> None:
    silent = Server(dra=False, error=Unavailable("no answer"))
    with pytest.raises(Unavailable):
        missing_dra(cast("Api", silent), ServerVersion(1, 36))
