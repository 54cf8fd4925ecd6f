"""A pod with two kinds of GCU is refused when it is made, where there is no DRA."""

from __future__ import annotations

import pytest

from dra_driver.kube.client import Client
from dra_driver.model.claims.claim import Object
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.driver import Driver
from tests.control_plane.legacy import refusal
from tests.control_plane.one_kind_cases import REFUSED, TAKEN, TWO, WORDS

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def server(api: Client, driver: Driver) -> Client:
    """Our client, once the chart's policy is heeded."""
    wait_until(lambda: WORDS[0] in refusal(api, TWO), PATIENCE, "the policy to be heeded")
    return api


@pytest.mark.parametrize("pod", REFUSED.values(), ids=REFUSED)
def test_two_kinds_are_refused_in_words(server: Client, pod: Object) -> None:
    told = refusal(server, pod)
    assert [words for words in WORDS if words not in told] == []


@pytest.mark.parametrize("pod", TAKEN.values(), ids=TAKEN)
def test_others_are_taken(server: Client, pod: Object) -> None:
    assert refusal(server, pod) == ""
