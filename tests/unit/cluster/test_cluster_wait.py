from __future__ import annotations

from typing import cast

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError, WaitTimeout


class Failing:
    """A cluster whose kubectl ends with an error."""

    def __init__(self, output: str) -> None:
        self._output = output

    def kubectl(self, *arguments: str) -> str:
        raise CommandError(arguments, 1, self._output)


@pytest.mark.parametrize(
    ("output", "raised"),
    [
        pytest.param("error: timed out waiting for the condition", WaitTimeout, id="rollout"),
        pytest.param("timed out waiting for the condition on pods/one", WaitTimeout, id="wait"),
        pytest.param('pods "one" not found', CommandError, id="nothing to wait for"),
    ],
)
def test_only_what_ran_out_of_time_is_a_timeout(output: str, raised: type[Exception]) -> None:
    with pytest.raises(raised, match=output):
        Cluster.wait(cast("Cluster", Failing(output)), "wait", "pod/one")
