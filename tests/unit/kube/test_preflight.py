"""Which servers are refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.preflight import check_server, check_visible, missing_dra
from dra_driver.kube.resources import RESOURCE_SLICES, Resource
from dra_driver.model.errors import Refused
from tests.fake_api.api import KNOWN, FakeApi


@pytest.mark.parametrize(
    ("check", "oldest", "words"),
    [
        (check_server, 34, r"v1\.33\.9, which does not serve resource.k8s.io/v1; .*1\.34 or newer"),
        (check_visible, 36, r"v1\.35\.9, which drops device taints: .*; let the chart's sliceForm"),
    ],
)
def test_older_ones_are_refused_with_the_reason(
    check: Callable[[ServerVersion], None], oldest: int, words: str
) -> None:
    check(ServerVersion(1, oldest))
    check(ServerVersion(1, oldest + 1))
    with pytest.raises(Refused, match=words):
        check(ServerVersion(1, oldest - 1, f"v1.{oldest - 1}.9"))


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
    api = FakeApi(served=KNOWN if dra else KNOWN - {RESOURCE_SLICES})
    said = missing_dra(api, ServerVersion(1, minor))
    assert said == (missing and said)
    assert missing in said


def test_a_server_that_does_not_say_is_not_taken_for_one_without() -> None:
    def silent(_: Resource) -> bool:
        raise Unavailable("no answer")

    with pytest.raises(Unavailable):
        missing_dra(cast("Api", SimpleNamespace(serves=silent)), ServerVersion(1, 36))
