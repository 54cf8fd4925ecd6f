"""Which servers are refused."""

from __future__ import annotations

import pytest

from dra_driver.kube.api import ServerVersion
from dra_driver.kube.preflight import check_server
from dra_driver.model.errors import Refused


@pytest.mark.parametrize("minor", [36, 37])
def test_served(minor: int) -> None:
    check_server(ServerVersion(1, minor))


def test_older_ones_are_refused_with_the_reason() -> None:
    with pytest.raises(Refused) as refused:
        check_server(ServerVersion(1, 35, "v1.35.4"))
    assert "v1.35.4, which does not keep device taints" in refused.value.what
    assert "1.36 or newer" in refused.value.remedy
