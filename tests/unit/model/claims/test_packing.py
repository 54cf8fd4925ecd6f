from __future__ import annotations

import pytest

from dra_driver.model.claims.packing import Packing, PackingChoice
from dra_driver.model.claims.request_config import RequestConfig

NOTHING = PackingChoice()
BOTH = PackingChoice(Packing.BINPACK, Packing.SPREAD)


@pytest.mark.parametrize(
    ("later", "earlier", "together"),
    [
        pytest.param(NOTHING, NOTHING, NOTHING, id="nothing is said"),
        pytest.param(NOTHING, BOTH, BOTH, id="what is not said stays"),
        pytest.param(BOTH, NOTHING, BOTH, id="nothing was said before"),
        pytest.param(
            PackingChoice(nodes=Packing.SPREAD),
            BOTH,
            PackingChoice(Packing.SPREAD, Packing.SPREAD),
            id="the later wins in what it says",
        ),
    ],
)
def test_over(later: PackingChoice, earlier: PackingChoice, together: PackingChoice) -> None:
    assert RequestConfig(later).over(RequestConfig(earlier)) == RequestConfig(together)
