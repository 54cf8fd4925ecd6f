from __future__ import annotations

import pytest

from controller.cache.counts import PodIndex
from dra_driver.model.claims.claim import Object
from tests.unit.controller.world import pod

NAME = "default/p"


@pytest.mark.parametrize(
    ("old", "new", "used"),
    [
        pytest.param(None, pod("p", "x", "y"), {"x", "y"}, id="a new pod"),
        pytest.param(pod("p", "x"), pod("p", "y"), {"y"}, id="another one"),
        pytest.param(pod("p", "x"), None, set(), id="it is gone"),
    ],
)
def test_users(old: Object | None, new: Object | None, used: set[str]) -> None:
    index = PodIndex()
    index.replace(NAME, None, old)
    index.replace(NAME, old, new)
    assert {each for each in ("x", "y") if NAME in index.users(f"default/{each}")} == used
    assert not index.users("other/x")
