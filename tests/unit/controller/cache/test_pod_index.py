from __future__ import annotations

import pytest

from controller.cache.pod_index import PodIndex
from dra_driver.model.claim import Object
from tests.unit.controller.world import pod

NAME = ("default", "p")


def made_by(workload: str | None, *claims: str) -> Object:
    found = pod("p", *claims)
    if workload is not None:
        found["metadata"]["ownerReferences"] = [{"uid": workload, "controller": True}]
    return found


@pytest.mark.parametrize(
    ("old", "new", "used", "workloads"),
    [
        pytest.param(None, made_by("rs", "x", "y"), {"x", "y"}, {"rs"}, id="a new pod"),
        pytest.param(made_by("rs", "x"), made_by("job", "y"), {"y"}, {"job"}, id="another one"),
        pytest.param(made_by("rs", "x"), None, set(), set(), id="it is gone"),
        pytest.param(None, made_by(None, "x"), {"x"}, set(), id="made by hand"),
    ],
)
def test_terms(old: Object | None, new: Object | None, used: set[str], workloads: set[str]) -> None:
    index = PodIndex()
    index.replace(NAME, None, old)
    index.replace(NAME, old, new)
    assert {each for each in ("x", "y") if NAME in index.users(("default", each))} == used
    assert {each for each in ("rs", "job") if NAME in index.replicas(each)} == workloads
    assert not index.users(("other", "x"))
