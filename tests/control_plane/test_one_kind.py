"""A pod with two kinds of GCU is refused when it is made, where there is DRA that is not used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dra_driver.kube.client import Client
from dra_driver.model.claims.claim import Object
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.applied import applied
from tests.control_plane.driver import Driver, rendered
from tests.control_plane.legacy import outcome, refusal, wait_until_heeded
from tests.control_plane.one_kind_cases import NAMESPACE, REFUSED, TAKEN, TWO, WORDS

pytestmark = pytest.mark.control_plane

ELSEWHERE = {"legacyResources": {"enabled": True, "namespaceLabels": {"is": "elsewhere"}}}


@pytest.fixture(scope="module")
def server(
    control_plane: Cluster, api: Client, driver: Driver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """Our client, where the policies are those of `mode: device-plugin`: limits stay limits."""
    folder = tmp_path_factory.mktemp("one-kind")
    one_kind = rendered(control_plane, folder, "policy-one-kind.yaml", {"mode": "device-plugin"})
    legacy = rendered(control_plane, folder, "policy-legacy-resources.yaml", ELSEWHERE)
    with applied(control_plane, *one_kind, *legacy):
        wait_until(
            lambda: WORDS[0] in refusal(api, TWO) and outcome(api, NAMESPACE) == "as it is",
            PATIENCE,
            "the policies to be heeded",
        )
        yield api
    wait_until_heeded(api, NAMESPACE)


@pytest.mark.parametrize("pod", REFUSED.values(), ids=REFUSED)
def test_two_kinds_are_refused_in_words(server: Client, pod: Object) -> None:
    told = refusal(server, pod)
    assert [words for words in WORDS if words not in told] == []


@pytest.mark.parametrize("pod", TAKEN.values(), ids=TAKEN)
def test_others_are_taken(server: Client, pod: Object) -> None:
    assert refusal(server, pod) == ""
